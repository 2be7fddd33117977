// The program of the benchmark of the gateway, in a process of its own. Arguments: the addresses of the provider and of the
// gateway, and the token. It prints what it has measured.
import { Agent, request } from "node:http";
import { median } from "./row.ts";

/** What the program measures of one side: medians in milliseconds. */
export interface Side {
  readonly firstByteMs: number;
  readonly wholeMs: number;
  /** Time in which all streams that begin at once have ended. */
  readonly manyMs: number;
}

const rounds = 40;
const manyRounds = 9;
export const streams = 50;
/** A request of 85 kB, like those of coding agents. */
const body = JSON.stringify({
  model: "claude-sonnet-4-5",
  max_tokens: 1_000,
  stream: true,
  messages: [{ role: "user", content: "x".repeat(85_000) }],
});

type Taken = Pick<Side, "firstByteMs" | "wholeMs">;

/** Returns what sends the request and reads the answer to its end. */
function client(url: string, key: string): () => Promise<Taken> {
  const agent = new Agent({ keepAlive: true });
  const headers = {
    "x-api-key": key,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  };
  return () =>
    new Promise((resolve, reject) => {
      const begun = performance.now();
      let firstByteMs = 0;
      const outgoing = request(`${url}/v1/messages`, { method: "POST", headers, agent }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`the answer has the status ${answer.statusCode}`));
        answer.once("data", () => (firstByteMs = performance.now() - begun));
        answer
          .on("data", () => undefined)
          .once("end", () => resolve({ firstByteMs, wholeMs: performance.now() - begun }));
      });
      outgoing.once("error", reject).end(body);
    });
}

async function many(send: () => Promise<Taken>): Promise<number> {
  const begun = performance.now();
  await Promise.all(Array.from({ length: streams }, send));
  return performance.now() - begun;
}

/** Measures both sides in turn, so that the load of the machine is the same for both. */
async function measure(provider: string, gateway: string, token: string): Promise<readonly Side[]> {
  const sides = [client(provider, "key"), client(gateway, token)].map((send) => ({
    send,
    one: [] as Taken[],
    many: [] as number[],
  }));
  // The first requests compile the code and open the connections.
  for (const { send } of sides) await many(send);
  for (let round = 0; round < rounds; round++) for (const side of sides) side.one.push(await side.send());
  for (let round = 0; round < manyRounds; round++)
    for (const side of sides) side.many.push(await many(side.send));
  return sides.map(({ one, many: times }) => ({
    firstByteMs: median(one.map((taken) => taken.firstByteMs)),
    wholeMs: median(one.map((taken) => taken.wholeMs)),
    manyMs: median(times),
  }));
}

if (import.meta.main) {
  const [provider = "", gateway = "", token = ""] = process.argv.slice(2);
  process.stdout.write(`${JSON.stringify(await measure(provider, gateway, token))}\n`, () => process.exit());
}
