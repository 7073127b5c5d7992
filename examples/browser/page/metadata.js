// What an exported model says of itself: JSON under the key "hedged" of its metadata.
const METADATA = 14; // the field of an ONNX file, which is a protobuf message

export function describe(bytes) {
  for (const [number, value] of fields(bytes)) {
    if (number !== METADATA) continue;
    const entry = new Map(fields(value));
    const text = (part) => new TextDecoder().decode(entry.get(part));
    if (text(1) === "hedged") return JSON.parse(text(2));
  }
  throw new Error("it was not written by `hedged export`");
}

// The fields of a message that hold bytes, by number.
function* fields(bytes) {
  let place = 0;
  const varint = () => {
    let number = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[place++];
      if (byte === undefined) throw new Error("the file was cut short");
      number += (byte & 127) * scale;
      if (byte < 128) return number;
    }
  };
  while (place < bytes.length) {
    const tag = varint();
    const kind = tag % 8;
    if (kind === 0) varint();
    else if (kind === 1) place += 8;
    else if (kind === 5) place += 4;
    else if (kind === 2) {
      const length = varint();
      yield [Math.floor(tag / 8), bytes.subarray(place, place + length)];
      place += length;
    } else throw new Error("it is no ONNX file");
  }
}
