// "Most uncertain": items by η, a page at a time.
import { get, remove } from "./api.js";
import { byId, count, decimal, el, percent } from "./dom.js";
import { picture, whileLeaving } from "./pictures.js";

const PAGE = 24;

export function createUncertain(app) {
  const grid = byId("uncertain-grid");
  let offset = 0;
  let asked = 0;

  async function load() {
    const mine = ++asked;
    grid.setAttribute("aria-busy", "true");
    try {
      const answer = await get("/v1/items", { order: "uncertainty", offset, limit: PAGE });
      if (mine === asked) await show(answer);
    } finally {
      if (mine === asked) grid.removeAttribute("aria-busy");
    }
  }

  async function show({ total, items }) {
    if (!items.length && offset > 0) {
      offset = Math.max(0, offset - PAGE); // the last item of the last page was removed
      return load();
    }
    grid.replaceChildren(...items.map((item) => card(item, app.model.role === "write" ? ask : null)));
    const range = `${count(offset + 1)} to ${count(offset + items.length)} of ${count(total)}`;
    byId("uncertain-range").textContent = items.length ? range : "The gallery is empty.";
    byId("uncertain-back").disabled = offset === 0;
    byId("uncertain-next").disabled = offset + PAGE >= total;
  }

  async function ask(item) {
    const named = item.label === null ? "without a label" : `labelled “${item.label}”`;
    const text = `${item.id}, ${named}, leaves the gallery. This cannot be undone.`;
    if (!(await app.confirm("Remove this item?", text, "Remove"))) return;
    try {
      await whileLeaving([item.id], async () => {
        await remove("/v1/items", { id: item.id });
        app.tell(`Removed ${item.id}.`);
        await app.changed();
        await load();
      });
      byId("view-uncertain").focus({ preventScroll: true }); // its button is gone
    } catch (error) {
      app.fail(error);
    }
  }

  const turn = (pages) => () => {
    offset = Math.max(0, offset + pages * PAGE);
    app.load("uncertain");
  };
  byId("uncertain-back").addEventListener("click", turn(-1));
  byId("uncertain-next").addEventListener("click", turn(1));
  return { load };
}

function card(item, ask) {
  const button = { type: "button", class: "quiet", "data-testid": "uncertain-remove", "aria-label": `Remove ${item.id}` };
  return el(
    "li",
    { class: "item", "data-id": item.id },
    picture(item.id),
    el("span", { class: "item-label" }, item.label ?? "No label"),
    el("span", { class: "item-id" }, item.id),
    el("span", { class: "item-numbers" }, `η ${decimal(item.uncertainty)}`),
    item.novelty !== null && el("span", { class: "item-numbers" }, `novelty ${percent(item.novelty)}`),
    ask && el("button", { ...button, onclick: () => ask(item) }, "Remove"),
  );
}
