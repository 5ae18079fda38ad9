"use strict";
const tools = document.getElementById("tools");
const search = document.getElementById("search");
const found = document.getElementById("found");
const chains = Array.from(document.querySelectorAll("details.chain"));
const groups = Array.from(document.querySelectorAll("details.group"));
const texts = chains.map((chain) => chain.textContent.toLowerCase());
function filter() {
  const wanted = search.value.trim().toLowerCase();
  let count = 0;
  chains.forEach((chain, place) => {
    const shows = texts[place].includes(wanted);
    chain.classList.toggle("hidden", !shows);
    count += shows ? 1 : 0;
  });
  groups.forEach((group) => {
    group.classList.toggle("hidden", !group.querySelector("details.chain:not(.hidden)"));
    if (wanted) group.open = true;
  });
  found.textContent = wanted ? count + " of " + chains.length + " chains" : "";
}
tools.hidden = false;
search.addEventListener("input", filter);
const graph = document.querySelector("#graph svg");
const zoomTools = document.getElementById("zoom");
if (graph && zoomTools) {
  zoomTools.hidden = false;
  const width = Number(graph.getAttribute("width"));
  const height = Number(graph.getAttribute("height"));
  const box = graph.parentElement;
  let scale = 1;
  const zoom = (factor) => {
    scale = Math.min(8, Math.max(0.05, scale * factor));
    graph.setAttribute("width", width * scale);
    graph.setAttribute("height", height * scale);
  };
  zoomTools.addEventListener("click", (event) => {
    if (event.target.id === "fit") zoom(Math.max(0.2, box.clientWidth / width) / scale);
    if (event.target.id === "larger") zoom(1.25);
    if (event.target.id === "smaller") zoom(0.8);
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
  }, { passive: false });
  graph.addEventListener("click", (event) => {
    const text = event.target.closest("text");
    if (!text) return;
    search.value = text.textContent.replace(/[*…].*$/, "").trim();
    filter();
    document.getElementById("chains").scrollIntoView();
  });
  if (width > box.clientWidth) zoom(Math.max(0.5, box.clientWidth / width));
}
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
