// The visible texts whose contrast with what is behind them is below WCAG's minimum, each as a
// line. Not seen: text of ::before and ::after, and elements that are drawn between a text and its
// ancestors.
(() => {
  const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });

  // Red, green, blue and alpha of a color in any notation.
  const parts = color => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = color;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };

  const over = (top, below) => {
    const alpha = top[3] + below[3] * (1 - top[3]);
    const mixed = i => alpha && (top[i] * top[3] + below[i] * below[3] * (1 - top[3])) / alpha;
    return [mixed(0), mixed(1), mixed(2), alpha];
  };

  const luminance = color => {
    const [red, green, blue] = color.slice(0, 3).map(part => {
      const it = part / 255;
      return it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };

  // What the browser draws below the page, which is dark for pages that say they can be.
  const probe = document.documentElement.appendChild(document.createElement('i'));
  probe.style.backgroundColor = 'Canvas';
  const canvas = parts(getComputedStyle(probe).backgroundColor);
  probe.remove();

  // NaN over an image.
  const contrast = (element, color) => {
    let layers = [parts(color), [0, 0, 0, 0]];
    for (let it = element; it; it = it.parentElement) {
      const style = getComputedStyle(it);
      if (style.backgroundImage !== 'none' && layers[1][3] < 1) return NaN;
      const ground = parts(style.backgroundColor);
      layers = layers.map(layer => over(layer, ground));
      for (const layer of layers) layer[3] *= style.opacity;
    }
    const [one, other] = layers.map(layer => luminance(over(layer, canvas)));
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  };

  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    const color = element instanceof SVGElement ? style.fill : style.color;
    const isDrawn = range.getClientRects().length > 0;
    if (isDrawn) texts.push([element, color, walker.currentNode.data.trim()]);
  }
  const noText = ['checkbox', 'color', 'file', 'hidden', 'image', 'radio', 'range'];
  for (const field of document.querySelectorAll('input, select, textarea')) {
    if (noText.includes(field.type)) continue;
    const hint = getComputedStyle(field, '::placeholder').color;
    const { color } = getComputedStyle(field);
    if (field.value) texts.push([field, color, field.value]);
    else if (field.placeholder) texts.push([field, hint, field.placeholder]);
  }

  const visible = { opacityProperty: true, visibilityProperty: true };
  return texts.flatMap(([element, color, text]) => {
    if (!text || !element.checkVisibility(visible)) return [];
    // WCAG asks for nothing here.
    if (element.closest(':disabled, [aria-disabled=true]')) return [];
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const least = isLarge ? 3 : 4.5;
    const found = contrast(element, color);
    if (found >= least) return [];
    const tag = element.cloneNode().outerHTML;
    return [`${found.toFixed(2)} of ${least}: ${color}, ${size}px: ${text.slice(0, 60)}: ${tag}`];
  });
})()
