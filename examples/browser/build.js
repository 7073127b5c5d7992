// Puts the page, onnxruntime-web and an exported model into site/: `npm run build -- MODEL.onnx`.
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync } from "node:fs";

const model = process.argv[2];
if (!model || !existsSync(model)) {
  console.error(`give an exported model, got ${model ?? "none"}: npm run build -- dogs.onnx`);
  process.exit(2);
}
const RUNTIME = "node_modules/onnxruntime-web/dist/";
const PARTS = ["ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"];
rmSync("site", { recursive: true, force: true });
mkdirSync("site/runtime", { recursive: true });
cpSync("page", "site", { recursive: true });
for (const part of PARTS) copyFileSync(RUNTIME + part, `site/runtime/${part}`);
copyFileSync(model, "site/model.onnx");
console.log("built site/: serve it with any web server, such as `python -m http.server -d site`");
