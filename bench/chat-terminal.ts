import { execFile, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { failedRow, type Row } from "./row.ts";

const deltasPerSecond = 2_000;
const keys = 100;
const entries = 5_000;
/** Long enough that a collection of garbage, which follows each run once, counts little. */
const idleMs = 60_000;

/** What a person notices in `reeve chat`: how fast a key is on the screen, what waiting costs, and how long a long session takes. */
export async function* terminalRows(folder: string): AsyncIterable<Row> {
  const place = await mkdtemp(join(tmpdir(), "reeve-chat-bench-"));
  const models = await streamingModels();
  const env = {
    ...process.env,
    REEVE_HOME: join(place, "home"),
    REEVE_MODEL: "openai-compatible/gpt-4o",
    OPENAI_COMPATIBLE_BASE_URL: models.url,
    OPENAI_COMPATIBLE_API_KEY: "k",
    TERM: "xterm-256color",
  };
  const main = join(folder, "dist/surfaces/cli/main.js");
  const reeve = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, [main, ...args], { cwd: place, env, maxBuffer: 2 ** 26 }))
      .stdout;
  const chat = startChat(`'${process.execPath}' '${main}' chat`, place, env);
  try {
    await chat.shows("gpt-4o");
    chat.type("Hello\r");
    await chat.shows("Done");
    yield {
      name: `a waiting chat, share of a processor in ${idleMs / 1_000} s`,
      value: await idleShare(await chat.processId()),
      unit: "%",
      against: null,
      goal: { atMost: 1 },
    };
    const session = await longSession(reeve, place);
    const from = performance.now();
    chat.type(`/resume ${session}\r`);
    await chat.shows("the very last answer");
    yield {
      name: `a session of ${entries.toLocaleString("en")} entries opens`,
      value: performance.now() - from,
      unit: "ms",
      against: null,
      goal: { atMost: 500 },
    };
    models.flood();
    chat.type("/new\r");
    chat.type("Flood\r");
    await chat.shows("delta");
    const times: number[] = [];
    let draft = "";
    for (let at = 0; at < keys; at++) {
      const key = "QWXZJKVY"[at % 8] ?? "Q";
      draft = (draft + key).slice(-8);
      const pressed = performance.now();
      chat.type(key);
      await chat.shows(draft);
      times.push(performance.now() - pressed);
      await wait(20);
    }
    yield {
      name: `key to screen, p95, while ${deltasPerSecond.toLocaleString("en")} deltas a second arrive`,
      value: times.toSorted((one, other) => one - other)[Math.floor(keys * 0.95)] ?? 0,
      unit: "ms",
      against: null,
      goal: { atMost: 50 },
    };
  } catch (error) {
    yield failedRow("reeve chat in a terminal", "ms", (error as Error).message);
  } finally {
    chat.stop();
    models.stop();
    await rm(place, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A chat in a pseudo terminal, which `script` of util-linux provides. */
function startChat(command: string, cwd: string, env: NodeJS.ProcessEnv) {
  const words = ["-qfec", `stty cols 80 rows 24; exec ${command}`, "/dev/null"];
  const child: ChildProcessWithoutNullStreams = spawn("script", words, { cwd, env });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return {
    type: (text: string) => {
      said = "";
      child.stdin.write(text);
    },
    shows: async (text: string): Promise<void> => {
      const ends = performance.now() + 20_000;
      while (!said.includes(text)) {
        if (performance.now() > ends) throw new Error(`the terminal did not show ${text}`);
        await Promise.race([once(child.stdout, "data"), wait(1_000)]);
      }
    },
    processId: async (): Promise<number> => {
      const { stdout } = await promisify(execFile)("ps", ["--ppid", String(child.pid), "-o", "pid="]);
      return Number(stdout.trim().split("\n")[0]);
    },
    stop: () => void child.kill("SIGKILL"),
  };
}

/** The share of a processor that a process takes while nothing happens, in percent. */
async function idleShare(pid: number): Promise<number> {
  const ticks = async (): Promise<number> => {
    const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  };
  await wait(1_000);
  const before = await ticks();
  await wait(idleMs);
  // A tick is a hundredth of a second.
  return (((await ticks()) - before) * 10 * 100) / idleMs;
}

interface Line {
  readonly type: string;
  readonly id?: string;
  readonly parentId?: string | null;
}

/** Imports a session with thousands of entries, made of copies of the first one. Returns its id. */
async function longSession(
  reeve: (...args: readonly string[]) => Promise<string>,
  place: string,
): Promise<string> {
  const [listed = ""] = (await reeve("sessions", "list", "--json")).split("\n");
  const { sessionId } = JSON.parse(listed) as { readonly sessionId: string };
  const file = join(place, "long.jsonl");
  await reeve("sessions", "export", sessionId, "--output", file);
  const lines = (await readFile(file, "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  const header = lines.filter(({ type }) => type === "session");
  const messages = lines.filter(({ type }) => type === "message").slice(0, 2);
  const long: Line[] = [];
  for (let at = 0; at < entries; at++) {
    const copied = messages[at % messages.length];
    if (copied !== undefined)
      long.push({ ...copied, id: `e${at}`, parentId: at === 0 ? null : `e${at - 1}` });
  }
  const last = JSON.stringify(long.at(-1)).replace(/"text":"[^"]*"/u, '"text":"the very last answer"');
  const text = [...header, ...long.slice(0, -1)].map((line) => JSON.stringify(line));
  await writeFile(join(place, "copies.jsonl"), `${[...text, last].join("\n")}\n`);
  const said = await reeve("sessions", "import", join(place, "copies.jsonl"), "--agent", "assistant");
  return said.trim().split(/\s+/u)[0] ?? "";
}

/** A provider that answers at once, and floods with deltas after `flood()`. */
async function streamingModels() {
  let isFlooding = false;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (isFlooding) flood(response);
    else {
      send(response, { content: "A short answer." });
      end(response);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    flood: () => {
      isFlooding = true;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const chunk = { id: "x", object: "chat.completion.chunk", created: 1, model: "gpt-4o" };

function send(response: ServerResponse, delta: object, reason: string | null = null): void {
  response.write(
    `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`,
  );
}

function end(response: ServerResponse): void {
  send(response, {}, "stop");
  const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 };
  response.write(`data: ${JSON.stringify({ ...chunk, choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}

function flood(response: ServerResponse): void {
  const everyMs = 5;
  let count = 0;
  const timer = setInterval(() => {
    for (let at = 0; at < (deltasPerSecond * everyMs) / 1_000; at++)
      send(response, { content: ++count % 40 === 0 ? "delta.\n\n" : "delta " });
  }, everyMs);
  response.on("close", () => clearInterval(timer));
}
