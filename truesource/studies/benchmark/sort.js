"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return heads[column].classList.contains("n") ? null : cell.textContent.toLowerCase();
  };
  const sort = (column, down) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [value(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return (down ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0);
    });
    body.append(...rows.map(([, row]) => row));
    heads.forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const number = column > 0 && head.classList.contains("n");
      sort(column, now === null ? number : now === "ascending");
    });
    head.append(button);
  });
  heads[0].setAttribute("aria-sort", "ascending");
}
