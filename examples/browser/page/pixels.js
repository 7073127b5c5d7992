// A photo as the network takes it: upright, its shorter edge resized, the middle cut out, values in [0, 1].
export async function pixels(file, { shape, colour, resize }) {
  const [channels, height, width] = shape;
  const image = await createImageBitmap(file); // turned as the camera says
  const scale = resize ? resize / Math.min(image.width, image.height) : 1;
  if (!resize && (image.width !== width || image.height !== height)) {
    throw new Error(`it has ${image.width}×${image.height} pixels, this model takes ${width}×${height}`);
  }
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  const [wide, high] = [image.width * scale, image.height * scale];
  context.drawImage(image, (width - wide) / 2, (height - high) / 2, wide, high);
  const { data } = context.getImageData(0, 0, width, height);
  const out = new Float32Array(channels * height * width);
  for (let place = 0; place < height * width; place++) {
    const [red, green, blue] = data.subarray(4 * place, 4 * place + 3);
    if (colour === "grey") out[place] = Math.round(0.299 * red + 0.587 * green + 0.114 * blue) / 255;
    else [red, green, blue].forEach((value, channel) => (out[channel * height * width + place] = value / 255));
  }
  return out;
}
