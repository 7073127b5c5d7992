// Where things are on the map: the camera, and which item is nearest to a point.
const PER_CELL = 2; // items that a cell of the grid holds on average

// A view of the data: the point in the middle and the pixels per unit. y grows upwards in data, downwards on screen.
export function createCamera() {
  const camera = { x: 0, y: 0, zoom: 1, width: 1, height: 1, least: 0, most: Infinity };

  camera.toScreen = (x, y) => [
    camera.width / 2 + (x - camera.x) * camera.zoom,
    camera.height / 2 - (y - camera.y) * camera.zoom,
  ];
  camera.toData = (left, top) => [
    camera.x + (left - camera.width / 2) / camera.zoom,
    camera.y - (top - camera.height / 2) / camera.zoom,
  ];
  camera.pan = (right, down) => {
    camera.x -= right / camera.zoom;
    camera.y += down / camera.zoom;
  };
  // What is under the pointer stays there.
  camera.zoomAt = (left, top, factor) => {
    const [x, y] = camera.toData(left, top);
    camera.zoom = Math.min(camera.most, Math.max(camera.least, camera.zoom * factor));
    const [moved, up] = camera.toData(left, top);
    camera.x += x - moved;
    camera.y += y - up;
  };
  // All of some data is in view, with a margin of `more` data around it in all.
  camera.fit = ([left, right], [bottom, top], more) => {
    camera.x = (left + right) / 2;
    camera.y = (bottom + top) / 2;
    const wide = camera.width / (right - left + more || 1);
    const high = camera.height / (top - bottom + more || 1);
    camera.zoom = 0.88 * Math.min(wide, high);
    camera.least = camera.zoom / 4;
    camera.most = camera.zoom * 2000;
  };
  return camera;
}

// From where to where nearly all values lie: a few outliers must not make the rest tiny.
export function extent(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  return sorted.length ? [at(0.002), at(0.998)] : [0, 1];
}

export function median(values) {
  return Float64Array.from(values).sort()[values.length >> 1] ?? 0;
}

// Items by cell, so that a look-up reads a few items and not all of them.
export function createGrid(x, y) {
  const [left, right] = extent(x);
  const [bottom, top] = extent(y);
  const side = Math.max(1, Math.round(Math.sqrt(x.length / PER_CELL)));
  const place = (value, low, high) =>
    Math.min(side - 1, Math.max(0, Math.floor(((value - low) / (high - low || 1)) * side)));
  const cells = new Map();
  for (let i = 0; i < x.length; i++) {
    const cell = place(y[i], bottom, top) * side + place(x[i], left, right);
    if (!cells.has(cell)) cells.set(cell, []);
    cells.get(cell).push(i);
  }

  // The nearest item within a radius that `allowed` lets through, or -1.
  return function nearest(atX, atY, radius, allowed = () => true) {
    let best = -1;
    let closest = radius * radius;
    const [firstRow, lastRow] = [place(atY - radius, bottom, top), place(atY + radius, bottom, top)];
    const [first, last] = [place(atX - radius, left, right), place(atX + radius, left, right)];
    for (let row = firstRow; row <= lastRow; row++) {
      for (let column = first; column <= last; column++) {
        for (const i of cells.get(row * side + column) ?? []) {
          const distance = (x[i] - atX) ** 2 + (y[i] - atY) ** 2;
          if (distance > closest || !allowed(i)) continue;
          closest = distance;
          best = i;
        }
      }
    }
    return best;
  };
}
