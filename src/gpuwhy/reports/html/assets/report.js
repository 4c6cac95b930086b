// The page says everything without this script; it adds copying, choosing and zooming.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");

  function each(selector, act, within) { Array.prototype.forEach.call((within || document).querySelectorAll(selector), act); }

  // --- copy buttons ---
  function copied(text, button) {
    function done(ok) {
      button.textContent = ok ? "Copied" : "Select and copy";
      button.classList.toggle("done", ok);
      setTimeout(function () { button.textContent = "Copy"; button.classList.remove("done"); }, 1500);
    }
    // an insecure origin (plain http) has no clipboard object
    if (navigator.clipboard && window.isSecureContext) {
      navigator.clipboard.writeText(text).then(function () { done(true); }, function () { done(byHand(button)); });
    } else { done(byHand(button)); }
  }
  function byHand(button) {
    var range = document.createRange(), selection = window.getSelection();
    range.selectNodeContents(button.parentNode.querySelector("code"));
    selection.removeAllRanges(); selection.addRange(range);
    try { return document.execCommand("copy"); } catch (error) { return false; }
  }
  each(".copy", function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      copied(button.parentNode.querySelector("code").textContent.replace(/\n$/, ""), button);
    });
  });

  // --- a link into something folded opens it ---
  function reveal() {
    var target = null;
    try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch (error) { return; }
    if (!target) { return; }
    var opened = false;
    for (var at = target.parentElement; at; at = at.parentElement) {
      if (at.tagName === "DETAILS" && !at.open) { at.open = true; opened = true; }
    }
    var link = target.getAttribute("data-link");
    if (link) { choose(link); }
    if (opened) { target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", reveal);
  window.addEventListener("beforeprint", function () { each("details", function (one) { one.open = true; }); });

  // --- the chain: a box chosen, its evidence shown ---
  function choose(link) {
    each(".node", function (node) {
      var on = node.getAttribute("data-link") === link;
      node.classList.toggle("on", on);
      if (on) { node.setAttribute("aria-current", "true"); } else { node.removeAttribute("aria-current"); }
    });
    each(".link", function (one) { one.classList.toggle("on", one.getAttribute("data-link") === link); });
  }
  each(".node", function (node) {
    var link = node.getAttribute("data-link");
    node.addEventListener("focus", function () { choose(link); });
    node.addEventListener("click", function (event) { event.preventDefault(); choose(link); node.focus(); });
    node.addEventListener("keydown", function (event) {
      var step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) {
        if (event.key === " ") { event.preventDefault(); choose(link); }
        return;
      }
      var all = Array.prototype.slice.call(node.ownerSVGElement.querySelectorAll(".node"));
      var next = all[all.indexOf(node) + step];
      if (next) { event.preventDefault(); next.focus(); }
    });
  });
  var last = document.querySelector(".picture .node:last-of-type");
  each(".picture svg.wide .node", function (node) { last = node; });
  if (last) { choose(last.getAttribute("data-link")); }

  // --- the time line ---
  each(".timeline", function (part) {
    var begin = +part.dataset.begin, end = +part.dataset.end, isTime = part.dataset.time === "1";
    var from = begin, to = end, chosen = -1, EDGE = 2;
    var svg = part.querySelector(".axis > svg"), axis = part.querySelector(".axis"), panel = part.querySelector(".chosen");
    var marks = Array.prototype.slice.call(svg.querySelectorAll("svg.m"));
    var ticks = Array.prototype.slice.call(svg.querySelectorAll("text.tick"));
    var least = isTime ? 0.01 : 4;
    part.querySelector(".tools").hidden = false;
    part.querySelector(".keys").hidden = false;
    axis.tabIndex = 0;
    axis.setAttribute("role", "slider");
    axis.setAttribute("aria-label", "Events, in their order");
    axis.setAttribute("aria-valuemin", "1");
    axis.setAttribute("aria-valuemax", String(marks.length));

    function two(number) { return (number < 10 ? "0" : "") + number; }
    function label(at) {
      if (!isTime) { return "line " + Math.round(at); }
      var date = new Date(at * 1000), said = two(date.getUTCHours()) + ":" + two(date.getUTCMinutes()) + ":" + two(date.getUTCSeconds());
      return to - from < 8 ? said.slice(3) + "." + ("00" + date.getUTCMilliseconds()).slice(-3) : said;
    }
    function draw() {
      var span = to - from || 1;
      marks.forEach(function (mark) {
        var x = begin === end ? 50 : EDGE + (+mark.dataset.at - from) / span * (100 - 2 * EDGE);
        mark.setAttribute("x", Math.max(-1000, Math.min(1100, x)).toFixed(3) + "%");
        mark.style.display = x < -1 || x > 101 ? "none" : "";
      });
      if (begin !== end) { ticks.forEach(function (tick, n) { tick.textContent = label(from + span * n / (ticks.length - 1)); }); }
    }
    function show(a, b) {
      var span = Math.min(Math.max(b - a, least), Math.max(end - begin, least));
      var middle = (a + b) / 2;
      from = middle - span / 2; to = middle + span / 2;
      if (from < begin) { to += begin - from; from = begin; }
      if (to > end) { from -= to - end; to = end; }
      if (from < begin) { from = begin; }
      draw();
    }
    function zoom(factor, about) {
      var at = about === undefined ? (chosen >= 0 && isSeen(chosen) ? +marks[chosen].dataset.at : (from + to) / 2) : about;
      show(at - (at - from) * factor, at + (to - at) * factor);
    }
    function isSeen(n) { var at = +marks[n].dataset.at; return at >= from && at <= to; }
    function pick(n) {
      n = Math.max(0, Math.min(marks.length - 1, n));
      if (chosen >= 0) { marks[chosen].classList.remove("on"); }
      chosen = n;
      var mark = marks[n], row = document.getElementById("event-" + mark.dataset.id);
      mark.classList.add("on");
      mark.parentNode.appendChild(mark);
      if (!isSeen(n)) { var at = +mark.dataset.at, half = (to - from) / 2; show(at - half, at + half); }
      panel.hidden = false;
      panel.textContent = "";
      Array.prototype.forEach.call(row.childNodes, function (child) { panel.appendChild(child.cloneNode(true)); });
      axis.setAttribute("aria-valuenow", String(n + 1));
      axis.setAttribute("aria-valuetext", row.textContent.replace(/\s+/g, " ").trim().slice(0, 300));
    }
    function failure() {
      var n = marks.findIndex(function (mark) { return mark.dataset.id === part.dataset.primary; });
      if (n < 0) { return; }
      var at = +marks[n].dataset.at, reach = Math.max((end - begin) / 20, isTime ? 2 : 10);
      show(at - reach, at + reach);
      pick(n);
    }
    var acts = {
      "in": function () { zoom(0.5); }, out: function () { zoom(2); }, all: function () { show(begin, end); }, failure: failure,
      left: function () { var s = (to - from) / 3; show(from - s, to - s); }, right: function () { var s = (to - from) / 3; show(from + s, to + s); }
    };
    each("button[data-do]", function (button) { button.addEventListener("click", acts[button.dataset["do"]]); }, part);
    marks.forEach(function (mark, n) { mark.addEventListener("click", function () { pick(n); axis.focus(); }); });
    axis.addEventListener("keydown", function (event) {
      if (event.ctrlKey || event.metaKey || event.altKey) { return; }
      var act = {
        ArrowRight: function () { pick(chosen + 1); }, ArrowDown: function () { pick(chosen + 1); },
        ArrowLeft: function () { pick(chosen - 1); }, ArrowUp: function () { pick(chosen - 1); },
        Home: function () { pick(0); }, End: function () { pick(marks.length - 1); },
        PageUp: acts.left, PageDown: acts.right, "+": acts["in"], "=": acts["in"], "-": acts.out, "0": acts.all,
        Enter: function () { if (chosen >= 0) { var at = panel.querySelector("a"); if (at) { at.click(); } } }
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    axis.addEventListener("dblclick", function (event) {
      var box = svg.getBoundingClientRect(), share = ((event.clientX - box.left) / box.width * 100 - EDGE) / (100 - 2 * EDGE);
      zoom(event.shiftKey ? 2 : 0.4, from + Math.max(0, Math.min(1, share)) * (to - from));
    });
    axis.addEventListener("wheel", function (event) {
      if (!event.ctrlKey) { return; }
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8);
    }, { passive: false });
    var first = marks.findIndex(function (mark) { return mark.dataset.id === part.dataset.primary; });
    chosen = -1;
    if (first >= 0) { pick(first); } else { axis.setAttribute("aria-valuenow", "1"); axis.setAttribute("aria-valuetext", "no event chosen"); }
    draw();
  });

  reveal();
})();
