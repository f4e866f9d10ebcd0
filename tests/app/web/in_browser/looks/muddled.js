() => {
  const SLACK = 1.5;
  const shown = (box, clip) => ({
    left: Math.max(box.left, clip.left), right: Math.min(box.right, clip.right),
    top: Math.max(box.top, clip.top), bottom: Math.min(box.bottom, clip.bottom),
  });
  const seen = (box) => box.right - box.left > SLACK && box.bottom - box.top > SLACK;
  const texts = [];
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const parent = node.parentElement;
    // Marks along the minimap are drawn as letters and may touch.
    if (!node.textContent.trim() || parent.closest("script, style, noscript, textarea, canvas, #marks, #stops")) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const whole of range.getClientRects()) {
      let clip = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
      let scrolls = false;
      let ellipsis = false;
      let own = false;
      for (let at = parent; at; at = at.parentElement) {
        const style = getComputedStyle(at);
        const box = at.getBoundingClientRect();
        const hides = style.overflowX !== "visible" || style.overflowY !== "visible";
        // A label that belongs in a box of its own is to fit in it.
        if (at.matches("button, .tag, .chip, kbd") && !own && !hides) {
          own = true;
          if (whole.left < box.left - SLACK || whole.right > box.right + SLACK) wrong.push(`out of its box: ${node.textContent.trim().slice(0, 60)}`);
        }
        if (at instanceof SVGElement && !(at instanceof SVGSVGElement)) continue;
        if (!hides) continue;
        if (style.textOverflow === "ellipsis") ellipsis = true;
        if (/auto|scroll/.test(style.overflowX + style.overflowY) || at.matches("#legend, #map, #stage")) scrolls = true;
        clip = shown(clip, { left: box.left, right: box.right, top: box.top, bottom: box.bottom });
      }
      const box = shown(whole, clip);
      if (!seen(box)) continue;
      const cut = whole.right > clip.right + SLACK || whole.left < clip.left - SLACK;
      if (cut && !scrolls && !ellipsis) wrong.push(`cut: ${node.textContent.trim().slice(0, 60)}`);
      texts.push({ box, node, parent, text: node.textContent.trim().slice(0, 40) });
    }
  }
  // What lies above others on purpose hides them: a list over the page, a table's head over its rows.
  const above = (one, other) => {
    const x = (Math.max(one.box.left, other.box.left) + Math.min(one.box.right, other.box.right)) / 2;
    const y = (Math.max(one.box.top, other.box.top) + Math.min(one.box.bottom, other.box.bottom)) / 2;
    const top = document.elementFromPoint(x, y);
    const opaque = top && top.closest("#hits, #tip, .sheet, #sticky, #completions, thead, #corner, .row.pinned");
    return opaque && (opaque.contains(one.parent) !== opaque.contains(other.parent));
  };
  texts.sort((a, b) => a.box.left - b.box.left);
  texts.forEach((one, i) => {
    for (let j = i + 1; j < texts.length && texts[j].box.left < one.box.right - SLACK; j++) {
      const other = texts[j];
      if (one.node === other.node) continue;
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      const along = Math.min(one.box.right, other.box.right) - other.box.left;
      // Lines of text touch by the room above and below their letters.
      if (along > SLACK && down > 4 && !above(one, other)) wrong.push(`over each other: ${one.text} | ${other.text}`);
    }
  });
  return [...new Set(wrong)];
}
