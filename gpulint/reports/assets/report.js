// Hover and arrow keys on the memory timelines, and curves that can be hidden. The page is complete without it.
"use strict";

for (const figure of document.querySelectorAll("figure")) {
  const points = JSON.parse(figure.querySelector("script").textContent);
  const svg = figure.querySelector("svg");
  const cursor = svg.querySelector(".cursor");
  const dot = svg.querySelector(".dot");
  const tip = figure.querySelector(".tip");
  let chosen = -1;

  function show(index) {
    chosen = Math.max(0, Math.min(points.length - 1, index));
    const point = points[chosen];
    cursor.setAttribute("x1", point.x);
    cursor.setAttribute("x2", point.x);
    dot.setAttribute("cx", point.x);
    dot.setAttribute("cy", point.y);
    cursor.classList.remove("hidden");
    dot.classList.remove("hidden");
    tip.textContent = "";
    point.text.forEach((line, number) => {
      const part = document.createElement(number ? "div" : "b");
      part.textContent = line;
      tip.append(part);
    });
    tip.classList.remove("hidden");
    const box = svg.getBoundingClientRect();
    const around = figure.getBoundingClientRect();
    const at = (point.x / svg.viewBox.baseVal.width) * box.width + box.left - around.left;
    const beside = at + 14 + tip.offsetWidth > around.width ? at - 14 - tip.offsetWidth : at + 14;
    tip.style.left = `${Math.max(4, beside)}px`;
    tip.style.top = `${box.top - around.top + 10}px`;
  }

  function hide() {
    for (const part of [cursor, dot, tip]) part.classList.add("hidden");
  }

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    let nearest = 0;
    points.forEach((point, index) => {
      if (Math.abs(point.x - x) < Math.abs(points[nearest].x - x)) nearest = index;
    });
    show(nearest);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("focus", () => show(chosen < 0 ? points.length - 1 : chosen));
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: points.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(moves[event.key]);
  });
  for (const key of figure.querySelectorAll(".key")) {
    key.addEventListener("click", () => {
      const off = key.getAttribute("aria-pressed") === "true";
      key.setAttribute("aria-pressed", String(!off));
      for (const curve of svg.querySelectorAll(`[data-series="${key.dataset.series}"]`)) {
        curve.classList.toggle("hidden", off);
      }
    });
  }
}
document.documentElement.dataset.ready = "true";
