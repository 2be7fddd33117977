// `node stream-client.ts URL COUNT`: opens COUNT streams, prints `open`, reads all of them to the end, and prints the time.
import { get } from "node:http";

const [url = "", count = "1"] = process.argv.slice(2);
const begun = performance.now();
let waiting = Number(count);
let bytes = 0;

function watch(): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      response.once("data", () => {
        if (--waiting === 0) process.stdout.write("open\n");
      });
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.byteLength;
      });
      response.on("end", resolve);
    }).on("error", reject);
  });
}

await Promise.all(Array.from({ length: Number(count) }, watch));
process.stdout.write(`${JSON.stringify({ ms: performance.now() - begun, bytes })}\n`);
