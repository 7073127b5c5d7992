// The map in WebGL 2: ellipses, and over them a dot at the centre of each. The corners of an ellipse look their item up in
// a texture: instances of a quad would do too, but are several times slower where a processor stands in for a graphics
// card. There, what takes time is pixels: so ellipses can be drawn a part at a time.
const ROW = 1024; // items in a row of the texture
const GOLDEN = 0.6180339887498949;

const HEAD = `#version 300 es
uniform highp sampler2D items; // two texels each: x, y, semi-axes; angle, label, faintness, colour
uniform vec3 palette[COLOURS];
uniform vec2 middle; // of the view, in data
uniform vec2 canvas; // pixels
uniform float zoom; // pixels per unit of data
uniform float dot; // radius of a dot, in pixels
uniform float chosen; // the label to show; -2 for all
uniform float strength; // opacity of a typical ellipse
vec4 shape, look;
bool faded;
void find(int item) {
  ivec2 texel = ivec2(2 * (item % ROW), item / ROW);
  shape = texelFetch(items, texel, 0);
  look = texelFetch(items, texel + ivec2(1, 0), 0);
  faded = chosen > -1.5 && abs(look.y - chosen) > 0.5;
}
`;

const ELLIPSES = [
  `${HEAD}
out vec2 place; // pixels from the centre, along the axes of the ellipse
flat out vec2 axes;
flat out vec4 colour;
const vec2 CORNERS[6] = vec2[](vec2(-1, -1), vec2(1, -1), vec2(-1, 1), vec2(-1, 1), vec2(1, -1), vec2(1, 1));
void main() {
  find(gl_VertexID / 6);
  axes = max(shape.zw * zoom, vec2(0.5));
  colour = vec4(palette[int(look.w)], clamp(strength * look.z, 0.02, 0.5));
  place = faded ? vec2(0.0) : CORNERS[gl_VertexID % 6] * (axes + 1.0);
  float c = cos(look.x), s = sin(look.x);
  vec2 pixel = (shape.xy - middle) * zoom + mat2(c, s, -s, c) * place;
  gl_Position = vec4(2.0 * pixel / canvas, 0.0, 1.0);
}`,
  `#version 300 es
precision highp float;
in vec2 place;
flat in vec2 axes;
flat in vec4 colour;
out vec4 shown;
void main() {
  // The distance to the edge in pixels, near enough for a smooth edge.
  vec2 scaled = place / axes;
  float reach = length(scaled);
  float edge = (reach - 1.0) * reach / max(length(scaled / axes), 1e-6);
  if (edge > 0.5) discard;
  float rim = 1.0 - smoothstep(0.0, 1.5, abs(edge + 0.75));
  float opacity = min(1.0, colour.a * min(1.0, 0.5 - edge) * (1.0 + 1.5 * rim));
  shown = vec4(colour.rgb * opacity, opacity);
}`,
];

const DOTS = [
  `${HEAD}
flat out vec3 colour;
flat out float radius;
void main() {
  find(gl_VertexID);
  colour = faded ? vec3(0.55) : palette[int(look.w)];
  radius = faded ? 0.6 * dot : dot;
  gl_PointSize = 2.0 * radius + 1.0;
  gl_Position = vec4(2.0 * (shape.xy - middle) * zoom / canvas, 0.0, 1.0);
}`,
  `#version 300 es
precision highp float;
flat in vec3 colour;
flat in float radius;
out vec4 shown;
void main() {
  float away = length(gl_PointCoord - 0.5) * (2.0 * radius + 1.0);
  float opacity = clamp(radius + 0.5 - away, 0.0, 1.0);
  shown = vec4(colour * opacity, opacity);
}`,
];

// Null if the browser has no WebGL 2. `places` holds lists: x, y, major, minor, angle, label, and colour, an index into
// the palette of [red, green, blue].
export function createScene(canvas, places, palette) {
  const options = { antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true };
  const gl = canvas.getContext("webgl2", options);
  if (!gl) return null;
  const [ellipses, dots] = [ELLIPSES, DOTS].map((sources) => link(gl, sources, palette));
  const { x, y, major, minor, label } = upload(gl, places);
  const amount = x.length;
  const dot = amount > 5000 ? 1.6 : amount > 500 ? 2.4 : 3.5;
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  gl.clearColor(0, 0, 0, 0);

  // From an ellipse on, up to which they cover no more than some pixels in all, and how many they do cover.
  function within(camera, chosen, from, most) {
    const [wide, high] = [camera.width / 2, camera.height / 2];
    let covered = 0;
    let to = from;
    for (; to < amount && covered < most; to++) {
      if (chosen >= -1 && label[to] !== chosen) continue;
      const [reach, across] = [major[to] * camera.zoom + 1, minor[to] * camera.zoom + 1];
      if (Math.abs(x[to] - camera.x) * camera.zoom > wide + reach) continue;
      if (Math.abs(y[to] - camera.y) * camera.zoom > high + reach) continue;
      covered += Math.min(4 * reach * across, 4 * wide * high);
    }
    return { to, covered };
  }

  // Ellipses from one to another, the first on an empty canvas, the others over those before; and all dots.
  function draw(camera, ratio, chosen, strength, from, to) {
    gl.viewport(0, 0, canvas.width, canvas.height);
    if (from === 0) gl.clear(gl.COLOR_BUFFER_BIT);
    for (const program of [ellipses, dots]) {
      gl.useProgram(program.made);
      gl.uniform2f(program.middle, camera.x, camera.y);
      gl.uniform2f(program.canvas, canvas.width, canvas.height);
      gl.uniform1f(program.zoom, camera.zoom * ratio);
      gl.uniform1f(program.dot, dot * ratio);
      gl.uniform1f(program.chosen, chosen);
      gl.uniform1f(program.strength, strength);
      if (program === dots) gl.drawArrays(gl.POINTS, 0, amount);
      else if (to > from) gl.drawArrays(gl.TRIANGLES, 6 * from, 6 * (to - from));
    }
  }

  // Calls back once all is drawn, with the milliseconds since, without blocking.
  function whenDrawn(callback) {
    const began = performance.now();
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    const look = () => {
      if (!gl.isContextLost() && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(look, 1);
        return;
      }
      gl.deleteSync(fence);
      callback(performance.now() - began);
    };
    setTimeout(look, 0);
  }

  return { amount, within, draw, whenDrawn };
}

// The items as a texture of floats, which vertex shaders can read everywhere, in an order in which the first ones are a
// fair sample of all. Returns the lists in that order.
function upload(gl, places) {
  const rank = (i) => (i * GOLDEN) % 1;
  const order = [...places.x.keys()].sort((i, j) => rank(i) - rank(j));
  const names = ["x", "y", "major", "minor", "angle", "label", "colour"];
  const sorted = Object.fromEntries(names.map((name) => [name, Float64Array.from(order, (i) => places[name][i])]));
  const { x, y, major, minor, angle, label, colour } = sorted;
  const size = (i) => Math.sqrt(Math.max(major[i] * minor[i], 1e-30));
  const typical = Float64Array.from(order, (_, i) => size(i)).sort()[order.length >> 1];
  const rows = Math.max(1, Math.ceil(order.length / ROW));
  const texels = new Float32Array(rows * ROW * 8);
  order.forEach((_, i) => {
    const faintness = typical / size(i); // the larger an ellipse, the fainter
    texels.set([x[i], y[i], major[i], minor[i], angle[i], label[i], faintness, colour[i]], 8 * i);
  });
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, 2 * ROW, rows, 0, gl.RGBA, gl.FLOAT, texels);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  return sorted;
}

// A program with the places of its uniforms.
function link(gl, sources, palette) {
  const made = gl.createProgram();
  const kinds = [gl.VERTEX_SHADER, gl.FRAGMENT_SHADER];
  sources.forEach((source, place) => {
    const shader = gl.createShader(kinds[place]);
    gl.shaderSource(shader, source.replace("COLOURS", palette.length).replaceAll("ROW", ROW));
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  });
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`The map cannot be drawn: ${gl.getProgramInfoLog(made)}`);
  }
  gl.useProgram(made);
  gl.uniform3fv(gl.getUniformLocation(made, "palette"), palette.flat());
  const names = ["middle", "canvas", "zoom", "dot", "chosen", "strength"];
  return { made, ...Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(made, name)])) };
}
