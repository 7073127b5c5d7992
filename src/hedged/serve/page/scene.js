// The ellipses of the map in WebGL 2, in one draw call a frame. Vertices look their item up in a texture: six of them are
// a quad. Instances of a quad would do too, but are several times slower where a processor stands in for a graphics card.
const ROW = 1024; // items in a row of the texture

const VERTEX = `#version 300 es
uniform highp sampler2D items; // two texels each: x, y, semi-axes; angle, label, opacity, colour
uniform vec3 palette[COLOURS];
uniform vec2 middle; // of the view, in data
uniform vec2 canvas; // pixels
uniform float zoom; // pixels per unit of data
uniform float dot; // radius of the dot at the centre, in pixels
uniform float chosen; // the label to show; -2 for all
uniform bool whole; // ellipses too, or only the dots
out vec2 place; // pixels from the centre, along the axes of the ellipse
flat out vec2 axes;
flat out vec4 colour;
flat out float radius;
const vec2 CORNERS[6] = vec2[](vec2(-1, -1), vec2(1, -1), vec2(-1, 1), vec2(-1, 1), vec2(1, -1), vec2(1, 1));
void main() {
  int item = gl_VertexID / 6;
  ivec2 texel = ivec2(2 * (item % ROW), item / ROW);
  vec4 shape = texelFetch(items, texel, 0);
  vec4 look = texelFetch(items, texel + ivec2(1, 0), 0);
  vec3 paint = palette[int(look.w)];
  float angle = look.x, label = look.y;
  bool faded = chosen > -1.5 && abs(label - chosen) > 0.5;
  axes = shape.zw * zoom;
  colour = vec4(paint, faded ? 0.0 : look.z);
  // What is too faint to see costs no pixels: then only the dot is drawn.
  if (!whole || colour.a < 0.008) axes = vec2(0.0);
  radius = faded ? 0.6 * dot : dot;
  place = CORNERS[gl_VertexID % 6] * (max(axes, vec2(radius)) + 1.0);
  float c = cos(angle), s = sin(angle);
  vec2 pixel = (shape.xy - middle) * zoom + mat2(c, s, -s, c) * place;
  gl_Position = vec4(2.0 * pixel / canvas, 0.0, 1.0);
  if (faded) colour.rgb = vec3(0.55);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec2 place;
flat in vec2 axes;
flat in vec4 colour;
flat in float radius;
uniform float dotOpacity;
out vec4 shown;
void main() {
  float opacity = dotOpacity * (1.0 - smoothstep(radius - 0.5, radius + 0.5, length(place)));
  if (axes.y > 0.0) {
    // The distance to the edge in pixels, near enough for a smooth edge.
    vec2 scaled = place / axes;
    float reach = length(scaled);
    float edge = (reach - 1.0) * reach / max(length(scaled / axes), 1e-6);
    float inside = 1.0 - smoothstep(-0.5, 0.5, edge);
    float rim = 1.0 - smoothstep(0.0, 1.5, abs(edge + 0.75));
    opacity = max(opacity, colour.a * inside * (1.0 + 1.5 * rim));
  }
  if (opacity <= 0.0) discard;
  opacity = min(opacity, 1.0);
  shown = vec4(colour.rgb * opacity, opacity);
}`;

const UNIFORMS = ["middle", "canvas", "zoom", "dot", "chosen", "whole", "dotOpacity", "palette"];

// Null if the browser has no WebGL 2. `places` holds lists: x, y, major, minor, angle, label, and colour, an index into
// the palette of [red, green, blue].
export function createScene(canvas, places, palette) {
  const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
  if (!gl) return null;
  const program = link(gl, palette.length);
  const uniform = Object.fromEntries(UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]));
  gl.useProgram(program);
  gl.uniform3fv(uniform.palette, palette.flat());
  upload(gl, places);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  gl.clearColor(0, 0, 0, 0);
  const amount = places.x.length;
  const dot = amount > 5000 ? 1.6 : amount > 500 ? 2.4 : 3.5;

  function draw(camera, ratio, chosen, whole) {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(uniform.middle, camera.x, camera.y);
    gl.uniform2f(uniform.canvas, canvas.width, canvas.height);
    gl.uniform1f(uniform.zoom, camera.zoom * ratio);
    gl.uniform1f(uniform.dot, dot * ratio);
    gl.uniform1f(uniform.chosen, chosen);
    gl.uniform1i(uniform.whole, whole ? 1 : 0);
    gl.uniform1f(uniform.dotOpacity, 0.85);
    gl.drawArrays(gl.TRIANGLES, 0, 6 * amount);
  }

  // Calls back with the milliseconds that the last draw took, without blocking.
  function time(callback) {
    const began = performance.now();
    const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    const look = () => {
      if (gl.isContextLost()) return;
      if (gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) {
        setTimeout(look, 4);
        return;
      }
      gl.deleteSync(fence);
      callback(performance.now() - began);
    };
    setTimeout(look, 0);
  }

  return { draw, time };
}

// The items as a texture of floats, which vertex shaders can read everywhere.
function upload(gl, { x, y, major, minor, angle, label, colour }) {
  const rows = Math.max(1, Math.ceil(x.length / ROW));
  const texels = new Float32Array(rows * ROW * 8);
  const opacity = opacities(x, y, major, minor);
  for (let i = 0; i < x.length; i++) {
    texels.set([x[i], y[i], major[i], minor[i], angle[i], label[i], opacity[i], colour[i]], 8 * i);
  }
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, 2 * ROW, rows, 0, gl.RGBA, gl.FLOAT, texels);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
}

// The larger an ellipse, the fainter: and the more they overlap, the fainter are all of them.
function opacities(x, y, major, minor) {
  const sizes = Float64Array.from(major, (axis, i) => Math.sqrt(Math.max(axis * minor[i], 1e-30)));
  const sorted = sizes.slice().sort();
  const typical = sorted[sorted.length >> 1] || 1;
  const area = Math.max(spread(x) * spread(y), 1e-30);
  const layers = (Math.PI * sizes.reduce((sum, size) => sum + size * size, 0)) / area;
  const usual = Math.min(0.3, Math.max(0.015, 1.2 / (1 + layers)));
  return sizes.map((size) => Math.min(0.5, usual * (typical / size)));
}

function spread(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return high - low;
}

function link(gl, colours) {
  const program = gl.createProgram();
  for (const [kind, source] of [
    [gl.VERTEX_SHADER, VERTEX.replace("COLOURS", colours).replaceAll("ROW", ROW)],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`The map cannot be drawn: ${gl.getProgramInfoLog(program)}`);
  }
  return program;
}
