// Draws the plots of a table when it is opened, and again when the colours of the system change.
(() => {
  "use strict";
  const PLACES = 10000, NARROWEST = 0.006;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const number = (value) => value.toLocaleString("en-US");
  const size = (bytes) => {
    let power = 0;
    while (bytes >= 1024 && power < 4) { bytes /= 1024; power += 1; }
    return power ? bytes.toFixed(1) + " " + ["KiB", "MiB", "GiB", "TiB"][power - 1] : number(bytes) + (bytes === 1 ? " byte" : " bytes");
  };
  // Axes of bytes count in the unit of the largest bar, so that ticks are round numbers.
  const unitOf = (sizes) => {
    const power = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, ...sizes)) / 10)));
    return { by: 1024 ** power, name: ["bytes", "KiB", "MiB", "GiB", "TiB"][power] };
  };
  const tips = (...pairs) => pairs.map(([field, title]) => ({ field, title, type: "nominal" }));

  function config() {
    const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line");
    return {
      aria: false, background: "transparent", font: "system-ui, 'DejaVu Sans', sans-serif", view: { stroke: line },
      axis: { labelColor: soft, titleColor: ink, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 11, titleFontSize: 12, gridOpacity: 0.6, titleLimit: 320 },
      legend: { labelColor: soft, titleColor: ink, titleFontSize: 12, labelLimit: 200, titleLimit: 200 }, range: { category: [colour("--a"), colour("--b"), colour("--c"), "#3ca951", "#c061cb", "#e5484d", "#6cc5b0"] },
    };
  }

  function mapSpec(data, choices) {
    const { axes, path, rows, bytes, minute, often } = data.map;
    const x = axes[choices.x];
    const alone = axes.length === 1 || choices.x === choices.y;
    const y = alone ? null : axes[choices.y];
    const count = path.length;
    const oldest = Math.min(...minute), day = 1440;
    const value = { rows: (i) => rows[i], bytes: (i) => bytes[i], age: (i) => (minute[i] - oldest) / day, often: (i) => often[i] }[choices.colour];
    const titles = { rows: "rows", bytes: "bytes", age: "days after the oldest file", often: "share of reads" };
    const order = [...path.keys()].sort((a, b) => x.start[a] - x.start[b] || x.end[a] - x.end[b]);
    const place = new Map(order.map((file, at) => [file, at]));
    const bounds = (axis, i) => axis.low[i] || axis.high[i] ? (axis.low[i] || "?") + " … " + (axis.high[i] || "?") : "unknown";
    const values = path.map((name, i) => {
      const found = { x: x.start[i] / PLACES, x2: Math.max(x.end[i], x.start[i] + NARROWEST * PLACES) / PLACES, v: value(i), file: name, rows: number(rows[i]), bytes: size(bytes[i]), at: new Date(minute[i] * 60000).toISOString().slice(0, 16).replace("T", " ") + " UTC" };
      found.y = alone ? place.get(i) / count : y.start[i] / PLACES;
      found.y2 = alone ? (place.get(i) + 1) / count : Math.max(y.end[i], y.start[i] + NARROWEST * PLACES) / PLACES;
      axes.forEach((axis, n) => { found["b" + n] = bounds(axis, i); });
      return found;
    });
    const axisOf = (axis, ticks) => ({ title: axis ? axis.name + ", all rows in order" : "files, in order of " + x.name, values: [0, 0.25, 0.5, 0.75, 1], labelExpr: axis ? ticks + "[round(datum.value * 4)]" : "''", labelLimit: 110, labelFlush: true, labelOverlap: "greedy" });
    return {
      height: 340, data: { values },
      params: [{ name: "xticks", value: x.ticks }, { name: "yticks", value: y ? y.ticks : [] }],
      mark: { type: "rect", opacity: 0.7, stroke: colour("--page"), strokeWidth: count > 300 ? 0.15 : 0.6 },
      encoding: {
        x: { field: "x", type: "quantitative", scale: { domain: [0, 1], nice: false }, axis: axisOf(x, "xticks") }, x2: { field: "x2" },
        y: { field: "y", type: "quantitative", scale: { domain: [0, 1], nice: false }, axis: axisOf(y, "yticks") }, y2: { field: "y2" },
        color: { field: "v", type: "quantitative", scale: { scheme: colour("--scheme") }, legend: { title: titles[choices.colour], format: choices.colour === "often" ? "%" : choices.colour === "age" ? ".1~f" : "~s", orient: "top", gradientLength: 180, titleOrient: "left" } },
        tooltip: [...axes.map((axis, n) => ({ field: "b" + n, title: axis.name, type: "nominal" })), ...tips(["rows", "rows"], ["bytes", "size"], ["at", "written at"], ["file", "file"])],
      },
    };
  }

  function depthSpec(data) {
    const whens = data.depth.map(([when]) => when);
    const tops = [...new Set(data.depth.flatMap(([, bars]) => bars.map(([top]) => top)))].sort((a, b) => a - b);
    const label = (top) => (top <= 16 ? String(top) : "… " + number(top));
    const values = data.depth.flatMap(([when, bars]) => bars.map(([top, files]) => ({ depth: label(top), files, when, tip: number(files) })));
    const one = whens.length === 1;
    return {
      height: 220, data: { values }, mark: { type: "bar" },
      encoding: {
        x: { field: "depth", type: "ordinal", sort: tops.map(label), axis: { title: "depth", labelAngle: 0, labelOverlap: "parity" } },
        ...(one ? {} : { xOffset: { field: "when", sort: whens } }),
        y: { field: "files", type: "quantitative", axis: { title: "files", tickMinStep: 1, format: "~s" } },
        color: one ? { value: colour("--a") } : { field: "when", type: "nominal", sort: whens, scale: { domain: whens, range: [colour("--c"), colour("--b"), colour("--a")].slice(-whens.length) }, legend: { title: null, orient: "top" } },
        tooltip: tips(["when", "when"], ["depth", "depth"], ["tip", "files"]),
      },
    };
  }

  function readsSpec(data) {
    const values = data.reads.flatMap(([predicate, bins], row) => bins.map((share, bin) => ({ row, predicate, bin, share, tip: Math.round(100 * share) + " %" })));
    return {
      height: 22 * data.reads.length, data: { values }, params: [{ name: "names", value: data.reads.map(([predicate]) => predicate) }],
      mark: { type: "rect", stroke: colour("--card"), strokeWidth: 0.5 },
      encoding: {
        x: { field: "bin", type: "ordinal", axis: { title: "files, in the order of " + data.map.axes[0].name, labels: false, ticks: false } },
        y: { field: "row", type: "ordinal", axis: { title: null, labelExpr: "names[datum.value]", labelLimit: 220 } },
        color: { field: "share", type: "quantitative", scale: { domain: [0, 1], range: [colour("--heat0"), colour("--heat")] }, legend: { title: "files read", format: "%", orient: "top", gradientLength: 140, titleOrient: "left" } },
        tooltip: tips(["predicate", "condition"], ["tip", "files read here"]),
      },
    };
  }

  const versions = (data) => data.versions.map(([version, at, operation, rows, bytes, files]) => ({ version, at, operation, rows, bytes, rowsTip: number(rows), bytesTip: size(bytes), files: number(files) }));
  const versionTips = tips(["version", "version"], ["at", "committed at"], ["operation", "operation"], ["rowsTip", "rows"], ["files", "files"], ["bytesTip", "size"]);
  const versionAxis = { field: "version", type: "ordinal", axis: { title: "version", labelAngle: 0, labelOverlap: "greedy" } };
  const operationColour = { field: "operation", type: "nominal", legend: { title: null, orient: "top", columns: 4 } };

  function rowsSpec(data) {
    return {
      height: 180, data: { values: versions(data) },
      encoding: { x: versionAxis, y: { field: "rows", type: "quantitative", axis: { title: "rows", format: "~s", tickCount: 5, tickMinStep: 1 } } },
      layer: [
        { mark: { type: "line", color: colour("--c"), strokeWidth: 1.5 } },
        { mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { color: operationColour, tooltip: versionTips } },
      ],
    };
  }

  function bytesSpec(data) {
    const values = versions(data), unit = unitOf(values.map((each) => each.bytes));
    values.forEach((each) => { each.size = each.bytes / unit.by; });
    return {
      height: 180, data: { values }, mark: { type: "bar" },
      encoding: { x: versionAxis, y: { field: "size", type: "quantitative", axis: { title: unit.name, tickCount: 5, format: ",~r" } }, color: operationColour, tooltip: versionTips },
    };
  }

  function storageSpec(data) {
    const unit = unitOf(data.storage.map(([, bytes]) => bytes));
    return {
      height: 34 * data.storage.length, data: { values: data.storage.map(([what, bytes]) => ({ what, size: bytes / unit.by, tip: size(bytes) })) },
      mark: { type: "bar", color: colour("--a") },
      encoding: {
        y: { field: "what", type: "nominal", sort: null, axis: { title: null, labelLimit: 200 } },
        x: { field: "size", type: "quantitative", axis: { title: unit.name, tickCount: 5, format: ",~r" } },
        tooltip: tips(["what", "what"], ["tip", "size"]),
      },
    };
  }

  const specs = { map: mapSpec, depth: depthSpec, reads: readsSpec, rows: rowsSpec, bytes: bytesSpec, storage: storageSpec };

  function choicesOf(figure) {
    const of = (name, otherwise) => { const found = figure.querySelector("select." + name); return found ? found.value : otherwise; };
    return { x: Number(of("x", 0)), y: Number(of("y", 0)), colour: of("colour", "rows") };
  }

  async function draw(table, plot) {
    const holder = table.querySelector("script.data");
    const data = JSON.parse(holder.textContent);
    const spec = specs[plot.dataset.plot](data, choicesOf(plot.closest("figure")));
    const whole = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", autosize: { type: "fit-x", contains: "padding" }, description: plot.getAttribute("aria-label"), ...spec, config: config() };
    try {
      if (plot.view) { plot.view.finalize(); plot.view = null; }
      const made = await vegaEmbed(plot, whole, { renderer: "svg", actions: false, ast: true, tooltip: { theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" } });
      plot.view = made.view;
      plot.setAttribute("role", "img"); // Vega has made it a document of many marks; the sentence and the table say it all.
      plot.removeAttribute("aria-roledescription");
      plot.dataset.drawn = "yes";
    } catch (error) {
      plot.innerHTML = "";
      const text = document.createElement("p");
      text.className = "failed";
      text.textContent = "This plot cannot be drawn: " + error.message;
      plot.append(text);
      console.error(error);
    }
  }

  function drawTable(table, again) {
    if (!table.open) return;
    for (const plot of table.querySelectorAll(".plot")) if (again || !plot.dataset.drawn) draw(table, plot);
  }

  const tables = [...document.querySelectorAll("details.table")];
  for (const table of tables) {
    table.addEventListener("toggle", () => drawTable(table, false));
    for (const choice of table.querySelectorAll(".choices select")) choice.addEventListener("change", () => draw(table, choice.closest("figure").querySelector(".plot")));
    drawTable(table, false);
  }
  document.getElementById("open-all").addEventListener("click", () => tables.forEach((table) => { table.open = true; }));
  document.getElementById("close-all").addEventListener("click", () => tables.forEach((table) => { table.open = false; }));
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      try { await navigator.clipboard.writeText(code.textContent); button.textContent = "Copied"; } catch { button.textContent = "Selected"; }
    });
  }
  const openNamed = () => { const named = document.getElementById(decodeURIComponent(location.hash.slice(1))); if (named && named.matches("details.table")) { named.open = true; named.scrollIntoView(); } };
  addEventListener("hashchange", openNamed);
  openNamed();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => tables.forEach((table) => drawTable(table, true)));
  addEventListener("beforeprint", () => tables.forEach((table) => { table.open = true; }));
})();
