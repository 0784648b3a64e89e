"use strict";
(() => {
  const place = document.getElementById("explored");
  if (!place) return;
  const { make, button, say, shown, hidden, listeners } = page;
  const { words, models, sentences } = JSON.parse(document.getElementById("token-data").textContent);
  const nats = (value) => shown(value.toFixed(3));
  const gapOf = (pair) => Number((pair[1] - pair[0]).toFixed(3));
  const signed = (value) => (value > 0 ? "+" : "") + nats(value);
  const lengthOf = (sentence) => sentence.length;

  // ---- what is chosen
  const lengths = sentences.map(lengthOf);
  const numberField = (value, label) => make("input", { type: "number", value, min: 1, "aria-label": label });
  const least = numberField(Math.min(...lengths), "Shortest sentence");
  const most = numberField(Math.max(...lengths), "Longest sentence");
  const choose = (label, options) => {
    const made = make("select", { "aria-label": label });
    for (const [value, text] of options) made.append(make("option", { value }, text));
    return made;
  };
  const ofModel = choose("Model", []);
  const classes = [...new Set(sentences.flatMap((s) => s.classes.map((i) => words[i])))].filter(Boolean).sort();
  const ofClass = choose("Class of words", [["", "all words"], ...classes.map((name) => [name, name])]);
  const order = choose("Order of sentences", [["", "as in the corpus"], ["worst", "worst first"], ["best", "best first"]]);
  const offerModels = () => {
    const was = ofModel.value;
    ofModel.replaceChildren();
    models.forEach(({ name, objective }, i) => {
      if (!hidden.has(name)) ofModel.append(make("option", { value: String(i) }, name + " (" + objective + ")"));
    });
    if ([...ofModel.options].some((option) => option.value === was)) ofModel.value = was;
  };
  const choice = make("div", { class: "choice" }, make("label", {}, "Model ", ofModel));
  if (classes.length > 1) choice.append(make("label", {}, "Words ", ofClass));
  choice.append(make("label", {}, "Sentences of ", least, " to ", most, " words"), make("label", {}, "Order ", order));
  const list = make("ol", { class: "sentences" });
  place.append(choice, list);

  // ---- one token
  let open = null;
  const close = () => {
    if (!open) return;
    open.panel.remove();
    open.token.setAttribute("aria-expanded", "false");
    open = null;
  };
  const row = (cells, kind) => make("tr", {}, ...cells.map((text, i) => make(kind || "td", kind ? { scope: "col", class: i ? "n" : "" } : i ? { class: "num" } : {}, text)));
  const pairs = (flat) => {
    const found = [];
    for (let i = 0; flat && i < flat.length; i += 2) found.push([words[flat[i]], flat[i + 1]]);
    return found;
  };
  const likelyTable = (sentence, at, chosen) => {
    const same = models.map((model, i) => [model, i]).filter(([model]) => model.objective === models[chosen].objective && !hidden.has(model.name));
    const sides = [["truth", pairs(sentence.truths[sentence.models[chosen].truth][at])]];
    for (const [model, i] of same) {
      const { likely } = sentence.models[i];
      if (likely) sides.push([model.name, pairs(likely[at])]);
    }
    const missing = same.filter(([, i]) => !sentence.models[i].likely).map(([model]) => model.name);
    const rows = Math.max(...sides.map(([, found]) => found.length));
    const here = words[sentence.words[at]];
    const body = make("tbody");
    for (let i = 0; i < rows; i++) {
      const made = make("tr", {}, make("td", {}, String(i + 1)));
      for (const [, found] of sides) {
        const [word, probability] = found[i] || ["", ""];
        const kind = word === here ? " here" : "";
        made.append(make("td", { class: "word" + kind }, word), make("td", { class: "num" + kind }, probability === "" ? "" : probability.toPrecision(4)));
      }
      body.append(made);
    }
    const heads = make("tr", {}, make("th", { scope: "col" }, "rank"));
    for (const [name] of sides) heads.append(make("th", { scope: "col" }, name), make("th", { scope: "col", class: "n" }, name === "truth" ? "P" : "Q"));
    const made = [];
    if (rows) {
      const table = make("table", { class: "likeliest" }, make("caption", {}, "Most likely words"), make("thead", {}, heads), body);
      made.push(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Most likely words" }, table));
    } else made.push(make("p", { class: "note" }, "This run has no most likely words of this position."));
    if (missing.length) made.push(make("p", { class: "note" }, "Without full distributions: " + missing.join(", ") + "."));
    return made;
  };
  const details = (sentence, at, chosen) => {
    const context = models[chosen].objective === "causal"
      ? sentence.words.slice(0, at).map((i) => words[i]).join(" ") + " \u2026"
      : sentence.words.slice(0, lengthOf(sentence)).map((i, k) => (k === at ? "\u2026" : words[i])).join(" ");
    const scored = make("tbody");
    models.forEach((model, i) => {
      const pair = sentence.models[i].scores[at];
      if (pair && !hidden.has(model.name)) scored.append(row([model.name + " (" + model.objective + ")", nats(pair[0]), nats(pair[1]), signed(gapOf(pair))]));
    });
    const heads = row(["model", "ln P (truth)", "ln Q (model)", "ln Q \u2212 ln P"], "th");
    const head = make("h4", {}, make("span", { class: "here" }, words[sentence.words[at]]), " in: " + context);
    const made = make("div", { class: "likely", role: "region", "aria-label": "Token " + words[sentence.words[at]] }, head);
    if (scored.rows.length) made.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Log probabilities" }, make("table", { class: "scored" }, make("caption", {}, "Log probabilities, nats"), make("thead", {}, heads), scored)));
    else made.append(make("p", { class: "note" }, "This position does not count in this run."));
    made.append(...likelyTable(sentence, at, chosen));
    return made;
  };
  const press = (token, line, sentence, at) => {
    const again = open && open.token === token;
    close();
    if (again) return;
    const panel = details(sentence, at, Number(ofModel.value));
    line.append(panel);
    token.setAttribute("aria-expanded", "true");
    open = { token, panel };
    say("Details of " + words[sentence.words[at]] + " shown below its sentence");
  };

  // ---- all sentences
  const tokenOf = (sentence, at, chosen, line) => {
    const pair = sentence.models[chosen].scores[at];
    const text = words[sentence.words[at]];
    const made = button(text, () => press(made, line, sentence, at), { class: "token", "aria-expanded": "false", tabindex: "-1" });
    if (pair) {
      const gap = gapOf(pair);
      made.classList.add(gap < 0 ? "less" : "more");
      made.style.setProperty("--heat", Math.round(Math.min(1, Math.abs(gap) / 2) * 100) + "%");
      made.title = "ln Q \u2212 ln P = " + signed(gap);
      made.setAttribute("aria-label", text + ", " + signed(gap));
    }
    if (ofClass.value && words[sentence.classes[at]] !== ofClass.value) made.classList.add("other");
    return made;
  };
  const draw = () => {
    close();
    list.replaceChildren();
    const chosen = Number(ofModel.value);
    if (ofModel.value === "") return;
    const end = models[chosen].objective === "causal" ? 1 : 0;
    const gaps = sentences.map((s) => s.models[chosen].scores.reduce((sum, pair) => sum + (pair ? gapOf(pair) : 0), 0));
    const numbers = sentences.map((_, i) => i).filter((i) => lengths[i] >= Number(least.value) && lengths[i] <= Number(most.value));
    const classed = (i) => !ofClass.value || sentences[i].classes.some((at) => words[at] === ofClass.value);
    const chosenOnes = numbers.filter(classed);
    if (order.value) chosenOnes.sort((a, b) => (order.value === "worst" ? 1 : -1) * (gaps[a] - gaps[b]));
    for (const i of chosenOnes) {
      const sentence = sentences[i];
      const line = make("li", { "data-sentence": i });
      for (let at = 0; at < lengths[i] + end && at < sentence.words.length; at++) line.append(tokenOf(sentence, at, chosen, line), " ");
      list.append(line);
    }
    const first = list.querySelector(".token");
    if (first) first.tabIndex = 0;
    return chosenOnes.length;
  };
  list.addEventListener("keydown", (event) => {
    const token = event.target.closest(".token");
    if (!token) return;
    const tokens = [...list.querySelectorAll(".token")];
    const line = token.closest("li");
    const sibling = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling }[event.key];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = step ? tokens[tokens.indexOf(token) + step] : sibling && sibling.querySelector(".token");
    if (event.key === "Escape") close();
    if (!next) return;
    event.preventDefault();
    token.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const redraw = () => say(draw() + " sentences shown");
  for (const field of [ofModel, ofClass, order, least, most]) field.addEventListener("change", redraw);
  listeners.push(() => {
    offerModels();
    draw();
  });
  offerModels();
  draw();
  place.hidden = false;
})();
