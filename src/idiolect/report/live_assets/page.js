// Asks the server of this page every second how the runs stand, and shows it. All text goes in as text.
"use strict";

const SECOND = 1000;
const SVG = "http://www.w3.org/2000/svg";
// Okabe and Ito's colours for the colour-blind, without yellow; dashes tell apart what is beyond.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c"];
const COLUMNS = ["method", "score", "rounds", "speed", "left", "state"];
const DASHES = ["", "6 3", "2 3"];
const WIDEST = 920, HIGH = 240, LEFT = 56, RIGHT = 8, TOP = 8, BOTTOM = 24;

function made(tag, text, name) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (name) node.className = name;
  return node;
}

function drawn(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function clock(seconds) {
  if (seconds === null) return "";
  const whole = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return minutes < 60 ? `${minutes}:${two(whole % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

const LONGEST = 80;  // characters of a name that are shown; its end stays, where names differ
const brief = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 21)}…${text.slice(-20)}` : text);
const short = (value) => (value === null ? "NaN" : Math.abs(value) < 10 ? value.toFixed(3) : value.toPrecision(4));
const colour = (place) => COLOURS[place % COLOURS.length];
const dash = (place) => DASHES[Math.floor(place / COLOURS.length) % DASHES.length];

function state(now) {
  if (now.over) return "done";
  if (!now.begun) return "waiting for the runs to begin";
  if (!now.alive) return "no process works on it now";
  const parts = [now.text || `${Math.round(now.done)} of ${Math.round(now.total)} rounds`];
  if (now.speed && now.total > 1) parts.push(`${now.speed.toPrecision(3)} rounds/s`);
  if (now.left !== null) parts.push(`${clock(now.left)} left`);
  return parts.join(", ");
}

function chart(lines) {
  const courses = lines.map((line) => (line.scores[line.model] || []).filter((point) => point[1] !== null));
  const points = courses.flat();
  if (points.length < 2) return null;
  const last = Math.max(...points.map((p) => p[0]), 1);
  // The first fifth of the rounds, where all are bad, may lie outside: methods differ in what follows.
  const later = points.filter((p) => p[0] >= last / 5), values = (later.length > 1 ? later : points).map((p) => p[1]);
  const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
  const wide = Math.max(280, Math.min(WIDEST, document.getElementById("cells").clientWidth));
  const x = (round) => LEFT + ((wide - LEFT - RIGHT) * round) / last;
  const y = (value) => TOP + (HIGH - TOP - BOTTOM) * (1 - (value - low) / span);
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${HIGH}`, role: "img", "aria-label": `test ${lines[0].metric} over rounds; the table has the last values` });
  svg.append(drawn("path", { class: "axis", fill: "none", d: `M${LEFT} ${TOP}V${HIGH - BOTTOM}H${wide - RIGHT}` }));
  svg.append(drawn("text", { x: LEFT - 4, y: TOP + 8, "text-anchor": "end" }, short(high)));
  svg.append(drawn("text", { x: LEFT - 4, y: HIGH - BOTTOM, "text-anchor": "end" }, short(low)));
  svg.append(drawn("text", { x: wide - RIGHT, y: HIGH - 6, "text-anchor": "end" }, `round ${last}`));
  const inside = { x: LEFT, y: TOP - 2, width: wide - LEFT - RIGHT, height: HIGH - TOP - BOTTOM + 4 };
  const field = drawn("svg", { ...inside, viewBox: Object.values(inside).join(" ") });
  svg.append(field);
  courses.forEach((course, place) => {
    const way = course.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("");
    if (way) field.append(drawn("path", { class: "course", d: way, stroke: colour(place), "stroke-dasharray": dash(place) }));
  });
  return svg;
}

function row(line, place) {
  const row = made("tr"), name = made("th"), key = drawn("svg", { class: "key", viewBox: "0 0 26 8", "aria-hidden": "true" });
  name.scope = "row";
  key.append(drawn("path", { class: "course", d: "M0 4H26", stroke: colour(place), "stroke-dasharray": dash(place) }));
  const told = made("bdi", brief(line.method));
  told.title = line.method;
  name.append(key, told);
  row.append(name);
  const score = made("td"), better = { "↑": line.higher, "↓": !line.higher }[line.trend];
  for (const [model, course] of Object.entries(line.scores)) {
    const part = made("div", `${model} ${short(course[course.length - 1][1])} `);
    if (model === line.model) part.append(made("span", line.trend, better === undefined ? "" : better ? "better" : "worse"));
    score.append(part);
  }
  row.append(score, made("td", `${line.done}/${line.rounds}`), made("td", line.rate ? `${line.rate.toPrecision(3)}/s` : ""));
  const seeds = line.ended && line.ended < line.runs ? `, ${line.ended} of ${line.runs} seeds done` : "";
  row.append(made("td", clock(line.left)), made("td", line.status + seeds, line.status === "diverged" ? "diverged" : ""));
  return row;
}

function below(line) {
  const told = [...Object.values(line.hints).map((hint) => [hint, "hint"]), ...(line.message ? [[line.message, "diverged"]] : [])];
  return told.map(([text, name]) => {
    const row = made("tr"), cell = made("td", undefined, name);
    cell.colSpan = COLUMNS.length;
    cell.append(made("div", text));
    row.append(cell);
    return row;
  });
}

function cell(name, lines) {
  const part = made("section"), table = made("table"), head = made("tr"), body = made("tbody");
  part.append(made("h2", brief(name)));
  const picture = chart(lines);
  if (picture) part.append(picture);
  const metric = (lines.find((line) => line.metric) || { metric: "score" }).metric;
  for (const word of COLUMNS) {
    const heading = made("th", word === "score" ? `test ${metric}` : word);
    heading.scope = "col";
    head.append(heading);
  }
  lines.forEach((line, place) => body.append(row(line, place), ...below(line)));
  table.append(made("thead"), body);
  table.firstChild.append(head);
  const scroll = made("div", undefined, "scroll");
  scroll.tabIndex = 0;  // so that the arrow keys move what is wider than a phone
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `methods of ${brief(name)}`);
  scroll.append(table);
  part.append(scroll);
  return part;
}

const tables = () => [...document.querySelectorAll(".scroll")];

function show(now) {
  document.title = `${now.name}: ${now.over ? "done" : `${Math.floor((100 * now.done) / (now.total || 1))} %`}`;
  document.getElementById("name").textContent = brief(now.name);
  document.getElementById("state").textContent = state(now);
  const all = document.getElementById("all");
  all.max = now.total || 1;
  all.value = now.done;
  const cells = new Map();
  for (const line of now.lines) cells.set(line.cell, [...(cells.get(line.cell) || []), line]);
  const places = tables().map((table) => [table.scrollLeft, table === document.activeElement]);
  document.getElementById("cells").replaceChildren(...[...cells].map(([name, lines]) => cell(name, lines)));
  tables().forEach((table, i) => {
    const [left, focused] = places[i] || [0, false];
    table.scrollLeft = left;
    if (focused) table.focus({ preventScroll: true });
  });
}

async function ask() {
  let over = false;
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const now = await answer.json();
    show(now);
    over = now.over;
  } catch (error) {
    const told = error instanceof TypeError ? "the server of this page has ended" : error.message;
    document.getElementById("state").textContent = told;
    over = error instanceof TypeError;
  }
  if (!over) setTimeout(ask, SECOND);
}

ask();
