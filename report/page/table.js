// Tables that sort and filter.
const FIRST = 100;
// The length up to which a text is not broken into lines.
const SHORT = 24;
function table(where, { caption, columns, rows, sort = 0, down = true, empty }) {
  where.replaceChildren();
  if (!rows.length) { where.append(el("p", { class: "note" }, empty)); return; }
  const state = { sort, down, filter: "", all: false };
  const status = el("span", { role: "status" }), body = el("tbody");
  const filter = el("input", { type: "search", "aria-label": `Filter: ${caption}`, placeholder: "filter" });
  const more = el("button", { type: "button" }, "Show all rows");
  const value = (row, column) => (column.value ? column.value(row) : column.text(row));
  const heads = columns.map((column, place) => {
    const button = el("button", { type: "button", on: { click: () => {
      state.down = state.sort === place ? !state.down : !!column.num;
      state.sort = place;
      draw();
    } } }, column.title);
    return el("th", { scope: "col", class: column.num ? "num" : "" }, button);
  });
  const chosen = () => {
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const hit = (row) => { const text = columns.map((column) => column.text(row)).join(" ").toLowerCase(); return words.every((word) => text.includes(word)); };
    const column = columns[state.sort], by = state.down ? -1 : 1;
    return rows.filter(hit).sort((a, b) => {
      const [x, y] = [value(a, column), value(b, column)];
      return by * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
    });
  };
  const cell = (row, column) => {
    const text = column.text(row), act = column.act && column.act(row);
    const inner = act ? el("button", { type: "button", class: "link", on: { click: act } }, text) : text;
    const td = el("td", { class: `${column.num ? "num" : column.dim ? "dim" : ""}${text.length <= SHORT ? " short" : ""}` });
    if (column.bar) { const bar = el("span", { class: "bar-cell", "aria-hidden": "true" }); bar.style.width = `${Math.max(1, Math.round(70 * column.bar(row)))}px`; td.append(bar); }
    td.append(inner);
    return td;
  };
  function draw() {
    const found = chosen(), shown = state.all ? found : found.slice(0, FIRST);
    heads.forEach((head, place) => head.setAttribute("aria-sort", place === state.sort ? (state.down ? "descending" : "ascending") : "none"));
    heads.forEach((head, place) => { head.firstChild.textContent = columns[place].title + (place === state.sort ? (state.down ? " ▾" : " ▴") : ""); });
    body.replaceChildren(...shown.map((row) => el("tr", {}, ...columns.map((column) => cell(row, column)))));
    status.textContent = `${count(shown.length)} of ${count(rows.length)} rows`;
    more.hidden = shown.length === found.length;
  }
  filter.addEventListener("input", () => { state.filter = filter.value; draw(); });
  more.addEventListener("click", () => { state.all = true; draw(); });
  const box = el("div", { class: "tablebox", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body));
  where.append(el("div", { class: "above" }, rows.length > 5 ? filter : null, status, more), box);
  draw();
}
