// "Audit": what is likely wrong in the gallery, and one button to mend it.
import { get, post } from "./api.js";
import { byId, count, decimal, el, percent, plural } from "./dom.js";
import { picture, whileLeaving } from "./pictures.js";

const STEP = 20; // findings of a kind shown at a time
const PICTURES = 4; // of each group

const TELLS_LITTLE =
  "More than half of the items match everybody: it is likely the model that cannot tell them apart. Train or calibrate " +
  "it better before you remove any.";

// What is said of each kind. `ids` names a finding to the service; `drops` are items that accepting removes.
const KINDS = {
  mislabelled: {
    title: "Labels that are likely wrong",
    explanation: "The item matches the others of its label less than it matches somebody else.",
    words: (one) =>
      `${one.id} is labelled “${one.label}”. Of the others “${one.likelier}” is the likeliest ` +
      `(${percent(one.likelier_probability)}).`,
    chance: "it shows somebody else",
    groups: (one) => [
      [one.label, [one.id]],
      [one.likelier, one.likelier_items],
    ],
    action: (one) => `Relabel to “${one.likelier}”`,
    ids: (one) => [one.id],
    drops: () => [],
  },
  duplicates: {
    title: "Near-duplicates under two names",
    explanation: "Two items are each other’s best match but have two labels. One of the labels is likely wrong.",
    words: (one) =>
      `${one.first} (“${one.first_label}”) and ${one.second} (“${one.second_label}”) likely show one identity.`,
    chance: "both show one identity",
    groups: (one) => [
      [one.first_label, [one.first]],
      [one.second_label, [one.second]],
    ],
    action: (one) => `Remove ${one.second}`,
    ids: (one) => [one.first, one.second],
    drops: (one) => [one.second],
  },
  divided: {
    title: "Labels that stand for two identities",
    explanation: "The items of the label fall into two groups that match within, not between them.",
    words: (one) =>
      `“${one.label}” is likely two: ${plural(one.first.length, "item")} and ${plural(one.second.length, "item")}.`,
    chance: "they are two identities",
    groups: (one) => [
      ["First group", one.first],
      ["Second group", one.second],
    ],
    action: () => "Relabel the second group",
    ids: (one) => [one.label],
    drops: () => [],
  },
  poor: {
    title: "Items that match everybody",
    explanation: "The item says so little that anybody may be on it.",
    words: (one) => `${one.id} (“${one.label}”) has η ${decimal(one.uncertainty)}.`,
    chance: "it matches somebody else, on average",
    groups: (one) => [[one.label, [one.id]]],
    action: (one) => `Remove ${one.id}`,
    ids: (one) => [one.id],
    drops: (one) => [one.id],
  },
};

export function createAudit(app) {
  const list = byId("audit-list");
  let found = null;
  let shown = {};
  let asked = 0;

  async function load() {
    const mine = ++asked;
    byId("audit-note").textContent = "Looking through the gallery …";
    list.setAttribute("aria-busy", "true");
    try {
      const answer = await patiently(() => mine === asked);
      if (mine !== asked) return;
      found = answer;
      shown = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, STEP]));
      draw();
    } catch (error) {
      if (mine !== asked) return;
      byId("audit-note").textContent = "The audit did not finish.";
      throw error;
    } finally {
      if (mine === asked) list.removeAttribute("aria-busy");
    }
  }

  function draw() {
    const total = Object.keys(KINDS).reduce((sum, kind) => sum + found[kind].length, 0);
    const looked = `Looked at ${plural(found.items, "item")} of ${plural(found.identities, "label")}`;
    const said = `${looked}: ${total ? plural(total, "finding") : "nothing found"}.`;
    byId("audit-note").textContent = 2 * found.poor.length > found.items ? `${said} ${TELLS_LITTLE}` : said;
    list.replaceChildren(...Object.keys(KINDS).map(section));
  }

  function section(kind) {
    const { title, explanation } = KINDS[kind];
    const findings = found[kind];
    const rows = findings.slice(0, shown[kind]).map((one) => row(kind, one));
    const more = { type: "button", class: "quiet", onclick: () => showMore(kind) };
    return el(
      "section",
      { class: "kind", "data-testid": `audit-${kind}` },
      el("h3", {}, `${title} `, el("span", { class: "tally" }, count(findings.length))),
      el("p", { class: "hint" }, explanation),
      rows.length ? el("ul", { class: "findings" }, ...rows) : el("p", {}, "None."),
      findings.length > shown[kind] ? el("button", more, "Show more") : null,
    );
  }

  function showMore(kind) {
    const first = shown[kind];
    shown[kind] += STEP;
    draw();
    list.querySelectorAll(`[data-testid="audit-${kind}"] .finding`)[first]?.querySelector("button")?.focus();
  }

  function row(kind, one) {
    const { words, chance, groups, action } = KINDS[kind];
    const buttons =
      app.model.role === "write"
        ? el(
            "div",
            { class: "row" },
            actionButton("audit-accept", "", `Accept: ${action(one)}`, () => settle("accept", kind, one)),
            actionButton("audit-dismiss", "quiet", "Dismiss", () => settle("dismiss", kind, one)),
          )
        : null;
    return el(
      "li",
      { class: "finding" },
      el("div", { class: "finding-groups" }, ...groups(one).map(([name, ids]) => group(name, ids))),
      el(
        "div",
        { class: "finding-text" },
        el("p", {}, words(one)),
        el("p", {}, el("strong", {}, percent(one.probability)), ` that ${chance}`),
        buttons,
      ),
    );
  }

  async function settle(verb, kind, one) {
    const rows = [...list.querySelectorAll(".finding")];
    const place = rows.findIndex((each) => each.contains(document.activeElement));
    try {
      const gone = verb === "accept" ? KINDS[kind].drops(one) : [];
      await whileLeaving(gone, async () => {
        const { done } = await post(`/v1/audit/${verb}`, { kind, ids: KINDS[kind].ids(one) });
        forget(kind, one, gone);
        draw();
        focusNear(place);
        app.tell(done);
        if (verb === "accept") await app.changed("audit");
      });
    } catch (error) {
      app.fail(error);
    }
  }

  // What is settled goes, and with it all that is said of items that are no longer there.
  function forget(kind, one, gone) {
    found[kind] = found[kind].filter((each) => each !== one);
    for (const each of ["mislabelled", "duplicates", "poor"]) {
      found[each] = found[each].filter((other) => !KINDS[each].ids(other).some((id) => gone.includes(id)));
    }
  }

  // The button that had the focus is gone: go on at the finding in its place.
  function focusNear(place) {
    const rows = [...list.querySelectorAll(".finding")];
    const next = rows[Math.min(Math.max(place, 0), rows.length - 1)];
    (next?.querySelector("button") ?? byId("view-audit")).focus();
  }

  byId("audit-again").addEventListener("click", () => app.load("audit"));
  return { load };
}

// The audit; of a large gallery it is still being made when the service answers that it is, so it is asked again.
async function patiently(wanted) {
  for (;;) {
    try {
      return await get("/v1/audit");
    } catch (error) {
      if (error.status !== 503 || !error.after || !wanted()) throw error;
      byId("audit-note").textContent = `${error.message} …`;
      await new Promise((go) => setTimeout(go, 1000 * error.after));
    }
  }
}

const actionButton = (testid, kind, text, act) =>
  el("button", { type: "button", class: kind, "data-testid": testid, onclick: act }, text);

function group(name, ids) {
  const more = ids.length > PICTURES ? `, ${count(ids.length)} items` : "";
  return el(
    "figure",
    {},
    el("div", { class: "pictures" }, ...ids.slice(0, PICTURES).map((id) => picture(id))),
    el("figcaption", {}, `${name ?? "No label"}${more}`),
  );
}
