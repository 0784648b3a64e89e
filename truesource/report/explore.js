"use strict";
const page = (() => {
  const { runName, models } = JSON.parse(document.getElementById("page-data").textContent);
  const make = (name, attributes, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "class") made.className = value;
      else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const button = (text, press, more) => make("button", { type: "button", onclick: press, ...more }, text);
  const said = make("div", { class: "unseen", role: "status", id: "said" });
  const say = (text) => { said.textContent = text; };
  document.body.append(said);
  const all = (selector, inside) => [...(inside || document).querySelectorAll(selector)];
  const shown = (value) => String(value).replace("-", "\u2212");

  // ---- files and the clipboard
  const save = (name, kind, text) => {
    const address = URL.createObjectURL(new Blob([text], { type: kind }));
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  const copy = async (text, pressed) => {
    const was = pressed.textContent;
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      pressed.focus();
    }
    pressed.textContent = done ? "Copied" : "Not copied";
    say(pressed.textContent);
    setTimeout(() => { pressed.textContent = was; }, 1500);
  };
  const formula = /^[=+\-@\t\r]/; // of a spreadsheet; an apostrophe makes it text
  const cell = (value) => {
    const plain = value === null || value === undefined ? "" : String(value);
    const text = typeof value === "string" && formula.test(plain) && number(plain) === null ? "'" + plain : plain;
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };
  const csv = (rows) => rows.map((row) => row.map(cell).join(",") + "\n").join("");

  // ---- light and dark
  const root = document.documentElement;
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("truesource-theme");
      localStorage.setItem("truesource-theme", value);
    } catch { /* a browser may keep nothing for files */ }
    return null;
  };
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  const theme = button("", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    stored(root.dataset.theme);
    label();
  }, { class: "tool", id: "theme" });
  const label = () => { theme.textContent = isDark() ? "Light page" : "Dark page"; };
  if (["dark", "light"].includes(stored())) root.dataset.theme = stored();
  prefersDark.addEventListener("change", label);
  label();
  const bar = document.getElementById("tools");
  bar.append(theme);
  bar.hidden = false;

  // ---- tables
  const scale = { k: 1e3, K: 1e3, M: 1e6, G: 1e9 };
  const number = (text) => {
    const plain = text.trim().replaceAll("\u2212", "-").replace(/(\d),(?=\d{3})/g, "$1").replace(/^<\s*/, "");
    const endless = /^([+-]?)(\u221e|inf(inity)?)$/i.exec(plain);
    if (endless) return endless[1] === "-" ? -Infinity : Infinity;
    const time = /^(?:(\d+) h)? ?(?:(\d+) min)? ?(?:([\d.]+) s)?$/.exec(plain);
    if (plain && time) return 3600 * (time[1] || 0) + 60 * (time[2] || 0) + Number(time[3] || 0);
    const found = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(?=$|[\s%*[(]|[kKMG]B?\b)/.exec(plain);
    const unit = found && /^\s?([kKMG])B?\b/.exec(plain.slice(found[0].length));
    return found && Number(found[0]) * (unit ? scale[unit[1]] : 1);
  };
  const firstText = (element) => {
    if (element.dataset.text !== undefined) return element.dataset.text;
    const copied = element.cloneNode(true);
    for (const small of copied.querySelectorAll("small, .bar")) small.remove();
    return copied.textContent.trim();
  };
  const keyOf = (row, column) => {
    const found = row.cells[column];
    if (!found) return null;
    const text = found.dataset.value || firstText(found);
    if (["", "\u2013", "nan"].includes(text)) return null;
    const value = number(text);
    return value === null ? text.toLowerCase() : value;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b, "en", { numeric: true });
    return typeof a === "number" ? -1 : 1;
  };
  const groupsOf = (table) => {
    const groups = [];
    for (const row of table.tBodies[0].rows) {
      if (row.classList.contains("sig") && groups.length) groups.at(-1).push(row);
      else groups.push([row]);
    }
    return groups;
  };
  const sortable = (table) => {
    if (!table.tHead || !table.tBodies.length || table.tHead.rows.length !== 1) return;
    const groups = groupsOf(table);
    if (groups.length < 2 || groups.some(([row]) => /^[\u2003]/.test(row.cells[0].textContent))) return;
    const heads = [...table.tHead.rows[0].cells];
    const sort = (column, down) => {
      const keyed = groupsOf(table).map((group) => [keyOf(group[0], column), group]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        return down ? compare(b, a) : compare(a, b);
      });
      table.tBodies[0].append(...keyed.flatMap(([, group]) => group));
      heads.forEach((head, i) => {
        if (i === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      say("Sorted by " + heads[column].innerText + (down ? ", descending" : ", ascending"));
    };
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const pressed = button("", () => {
        const now = head.getAttribute("aria-sort");
        sort(column, now === "ascending");
      }, { class: "sort" });
      pressed.append(...head.childNodes);
      head.append(pressed);
    });
    table.classList.add("sorts");
    if (groups.length > 20) filterable(table);
  };
  const filterable = (table) => {
    const name = table.caption ? table.caption.textContent : "this table";
    const field = make("input", { type: "search", placeholder: "Show rows with \u2026", "aria-label": "Show rows of " + name + " with" });
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let left = 0;
      for (const group of groupsOf(table)) {
        const hit = group.some((row) => row.textContent.toLowerCase().includes(wanted));
        left += hit;
        for (const row of group) row.classList.toggle("no-match", !hit);
      }
      say(left + " rows shown");
    });
    const box = table.closest(".scroll") || table;
    const both = make("div");
    box.before(both);
    both.append(make("div", { class: "row-filter" }, field), box);
  };
  all("main table").forEach(sortable);
  for (const row of all("tr.sig")) {
    const mono = row.querySelector(".mono");
    if (mono) mono.after(" ", button("Copy", (event) => copy(mono.textContent, event.currentTarget), { class: "copy", "aria-label": "Copy the signature" }));
  }
  for (const block of all("pre")) {
    const what = block.dataset.what || "text";
    block.before(make("div", { class: "over" }, button("Copy", (event) => copy(block.textContent, event.currentTarget), { class: "copy", "aria-label": "Copy the " + what })));
  }
  const scrolls = () => {
    for (const box of all(".scroll, .wide")) {
      if (box.closest("[data-figure]")) continue;
      if (box.scrollWidth > box.clientWidth + 1) {
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        const caption = box.querySelector("caption");
        box.setAttribute("aria-label", caption ? caption.textContent : "wide content");
      } else if (box.tabIndex === 0) box.removeAttribute("tabindex");
    }
  };

  // ---- which models are shown
  const hidden = new Set();
  const listeners = [];
  const modelOf = (text) => models.find(({ names }) => names.includes(text));
  const tag = () => {
    for (const table of all("main table")) {
      if (!table.tHead || !table.tBodies.length) continue;
      const columns = [...table.tHead.rows[0].cells].map((head) => modelOf(head.innerText.split("\n")[0].trim()));
      for (const [row, ...rest] of groupsOf(table)) {
        if (row.dataset.model || !row.cells.length) continue;
        const model = modelOf(firstText(row.cells[0]));
        if (model) for (const each of [row, ...rest]) each.dataset.model = model.name;
      }
      columns.forEach((model, column) => {
        if (!model || !column) return;
        for (const row of table.rows) {
          const found = row.cells[column];
          if (found && !row.classList.contains("sig")) found.dataset.model = model.name;
        }
      });
    }
  };
  const filter = () => {
    for (const element of all("[data-model]")) {
      const model = modelOf(element.dataset.model);
      element.classList.toggle("no-model", Boolean(model) && hidden.has(model.name));
    }
    for (const listener of listeners) listener();
  };
  if (models.length > 1) {
    tag();
    const boxes = models.map(({ name }) => {
      const box = make("input", { type: "checkbox" });
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(name);
        else hidden.add(name);
        filter();
        say(models.length - hidden.size + " of " + models.length + " models shown");
      });
      return make("label", {}, box, " ", name);
    });
    bar.append(make("fieldset", { class: "models" }, make("legend", {}, "Models"), ...boxes));
  }

  // ---- figures: values, data, SVG, PDF
  const nameAt = (panel, axis, value) => (panel.places && panel.places[axis] && panel.places[axis][String(value)]) || null;
  const textOf = (panel, name, [x, y, low, high, value]) => {
    const part = (axis, at, title) => {
      if (at === null || at === undefined) return null;
      const place = nameAt(panel, axis, at);
      return place || (title ? title + ": " : axis + " ") + shown(at);
    };
    const parts = [panel.name, name, part("x", x, panel.x), part("y", y, panel.y)];
    if (low !== null && low !== undefined) parts.push(shown(low) + " to " + shown(high));
    if (value !== null && value !== undefined) parts.push(shown(value));
    return parts.filter(Boolean).join("\n");
  };
  const place = ([log, at, by], value) => at + by * (log ? Math.log10(value) : value);
  const marksOf = (panels) => {
    const marks = [];
    for (const panel of panels) {
      for (const { name, rows } of panel.series) {
        for (const row of rows) {
          let [x, y, low, high] = row;
          if (y === null && low !== undefined && low !== null) continue;
          if (x === null || y === null) continue;
          const at = [place(panel.fx, x), place(panel.fy, y)];
          if (at.every(Number.isFinite)) marks.push({ at, text: textOf(panel, name, row) });
        }
      }
    }
    return marks;
  };
  const dataOf = (panels) => {
    const rows = [["panel", "series", "x", "y", "low", "high", "value", "x axis", "y axis"]];
    for (const panel of panels) {
      for (const { name, rows: found } of panel.series) {
        for (const row of found) {
          const [x, y, low, high, value] = row;
          rows.push([panel.name, name, nameAt(panel, "x", x) || x, nameAt(panel, "y", y) || y, low, high, value, panel.x, panel.y]);
        }
      }
    }
    return csv(rows);
  };
  const alone = (svg) => {
    const copied = svg.cloneNode(true);
    for (const ring of copied.querySelectorAll(".ring")) ring.remove();
    for (const name of ["data-marks", "data-name", "class"]) copied.removeAttribute(name);
    copied.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const text = new XMLSerializer().serializeToString(copied).replace(/var\(--x[0-9a-f]{6},\s*(#[0-9a-f]{6})\)/g, "$1");
    return text.replace(/>/, '>\n<rect width="100%" height="100%" fill="white"/>') + "\n";
  };
  const quoted = (text) => (/^[\w./-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'"); // for a shell
  const explore = (plot) => {
    const svg = plot.querySelector("svg");
    const name = plot.dataset.figure;
    const marks = svg.dataset.marks ? marksOf(JSON.parse(svg.dataset.marks)) : [];
    const tools = make("div", { class: "tools" });
    const title = svg.getAttribute("aria-label");
    const about = name === "tree" ? "the tree" : title;
    if (svg.dataset.marks) tools.append(button("Data (CSV)", () => save(name + ".csv", "text/csv", dataOf(JSON.parse(svg.dataset.marks))), { "aria-label": "Data (CSV) of: " + about }));
    if (name === "tree") tools.append(button("Data (bracketing)", () => save("tree.mrg", "text/plain", title + "\n")));
    tools.append(button("SVG", () => save(name + ".svg", "image/svg+xml", alone(svg)), { "aria-label": "SVG of: " + about }));
    if (runName) {
      const command = ["truesource report", quoted("runs/" + runName), "--figure", quoted(name), "-o", quoted(name + ".pdf")].join(" ");
      tools.append(button("Copy the command for PDF", (event) => copy(command, event.currentTarget), { title: command, "aria-label": "Copy the command for PDF of: " + about }));
    }
    plot.append(tools);
    if (!marks.length) return;
    const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });
    plot.append(tip);
    const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "5");
    let now = -1;
    const show = (index) => {
      now = index;
      const mark = marks[index];
      ring.setAttribute("cx", mark.at[0]);
      ring.setAttribute("cy", mark.at[1]);
      svg.append(ring);
      tip.textContent = mark.text;
      tip.hidden = false;
      const box = plot.getBoundingClientRect();
      const at = ring.getBoundingClientRect();
      const left = Math.min(Math.max(0, at.right - box.left + 6), Math.max(0, box.width - tip.offsetWidth));
      tip.style.left = left + "px";
      tip.style.top = Math.max(0, at.top - box.top - tip.offsetHeight - 4) + "px";
    };
    const hide = () => {
      now = -1;
      ring.remove();
      tip.hidden = true;
    };
    const nearest = (event) => {
      const box = svg.getBoundingClientRect();
      const view = svg.viewBox.baseVal;
      const scale = box.width / view.width;
      const x = (event.clientX - box.left) / scale;
      const y = (event.clientY - box.top) / scale;
      let best = -1;
      let least = 14 / scale;
      marks.forEach(({ at }, i) => {
        const far = Math.hypot(at[0] - x, at[1] - y);
        if (far < least) [least, best] = [far, i];
      });
      if (best < 0) hide();
      else if (best !== now) show(best);
    };
    const box = plot.querySelector(".wide");
    box.addEventListener("pointermove", nearest);
    box.addEventListener("pointerdown", nearest);
    box.addEventListener("pointerleave", hide);
    box.addEventListener("blur", hide);
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Figure with " + marks.length + " values: " + title + ". Arrow keys read them.");
    box.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      if (!step) return;
      event.preventDefault();
      show((now + step + marks.length + (now < 0 && step < 0 ? 1 : 0)) % marks.length);
      say(marks[now].text);
    });
  };
  all("[data-figure]").forEach(explore);
  scrolls();
  addEventListener("resize", scrolls);
  for (const details of all("details")) details.addEventListener("toggle", scrolls);
  return { make, button, say, shown, models, hidden, listeners, modelOf };
})();
