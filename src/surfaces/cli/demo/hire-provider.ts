import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { addUsd, Fault } from "../../../kernel/index.ts";
import { demoPrices } from "./demo-model.ts";
import { testCommand } from "./hire-company.ts";

/** The parts of a request that the scripted provider reads. */
interface Asked {
  readonly max_tokens: number;
  readonly messages: readonly { readonly role: string; readonly content: readonly AskedBlock[] }[];
}

interface AskedBlock {
  readonly type: string;
  readonly text?: string;
  readonly content?: string;
}

/** One answer of the script: a command, or the report of the employee. */
type Line = (results: readonly string[]) => { readonly text: string; readonly command?: string };

/** Duration of an answer of this model, as a factor of the pace. */
const duration = 0.7;

/**
 * The provider of the hired agents: a server at 127.0.0.1 with the HTTP protocol of Anthropic and scripted answers.
 * It charges each answer at the demo's prices, in its own book.
 */
export class HireProvider {
  requests = 0;
  billedUsd = 0;
  readonly #server: Server;
  readonly #paceMs: number;

  private constructor(server: Server, paceMs: number) {
    this.#server = server;
    this.#paceMs = paceMs;
  }

  static async open(paceMs: number): Promise<HireProvider> {
    const server = createServer();
    const provider = new HireProvider(server, paceMs);
    server.on("request", (request, response) => {
      provider.#answer(request, response).catch((error: unknown) => response.destroy(Fault.from(error)));
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const body = Buffer.concat(pieces).toString();
    const inputTokens = Math.ceil(body.length / 4);
    const isCount = request.url?.endsWith("/count_tokens") === true;
    const answer = isCount
      ? { input_tokens: inputTokens }
      : this.#bill(JSON.parse(body) as Asked, inputTokens);
    if (!isCount) await setTimeout(this.#paceMs * duration);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(answer));
  }

  #bill({ messages }: Asked, inputTokens: number): object {
    const { text, command } = lineOf(messages);
    const use = { type: "tool_use", id: `call-${messages.length}`, name: "shell", input: { command } };
    const content = [{ type: "text", text }, ...(command === undefined ? [] : [use])];
    const outputTokens = Math.ceil(JSON.stringify(content).length / 4);
    const price = demoPrices.find({ provider: "demo", modelId: "small", inputTokens, at: Date.now() });
    this.requests++;
    this.billedUsd = addUsd(
      this.billedUsd,
      inputTokens * (price?.inputUsd ?? 0) + outputTokens * (price?.outputUsd ?? 0),
    );
    return { content, usage: { input_tokens: inputTokens, output_tokens: outputTokens } };
  }
}

/** Returns the answer to a conversation. It depends only on the conversation, so that any process can continue it. */
function lineOf(messages: Asked["messages"]): ReturnType<Line> {
  const blocks = messages.flatMap(({ content }) => content);
  const prompt = blocks.find(({ type }) => type === "text")?.text ?? "";
  const turn = messages.filter(({ role }) => role === "assistant").length;
  const script = prompt.includes("You are coder") ? coder : writer;
  const line = script[Math.min(turn, script.length - 1)] as Line;
  return line(blocks.filter(({ type }) => type === "tool_result").map(({ content = "" }) => content));
}

const repair = `sed 's|return Math.*|return Number(\`\${Math.round(Number(\`\${amount}e2\`))}e-2\`);|' src/round.js > round.new
mv round.new src/round.js
sed 's|^Rounds to cents.*|Rounds to cents, half away from zero, also where 100 times the amount is not exact: round(1.005) is 1.01.|' docs/api.md > api.new
mv api.new docs/api.md`;

const coder: readonly Line[] = [
  () => ({ text: "First the tests, as they are.", command: testCommand }),
  () => ({
    text: "1.005 times 100 is 100.49999. Shifting the decimal point in the text avoids that.",
    command: repair,
  }),
  () => ({ text: "Once more.", command: testCommand }),
  ([before = "", , after = ""]) => ({
    text: `${failures(before)} rounding error repaired, ${failures(after) === 0 ? "all tests pass" : `${failures(after)} tests fail`}.`,
  }),
];

const section = `sed -n 's/^- added: /- Added: /p; s/^- fixed: /- Fixed: /p' NOTES.md > news
{ printf '# Changelog\\n\\n## 0.9.0\\n\\n'; cat news; tail -n +2 CHANGELOG.md; } > changelog.new
mv changelog.new CHANGELOG.md
rm news`;

const writer: readonly Line[] = [
  () => ({ text: "What is new?", command: "cat NOTES.md CHANGELOG.md" }),
  () => ({ text: "Users see what was added and fixed.", command: section }),
  () => ({
    text: "dueDate() has no example.",
    command: `echo "dueDate(new Date(0), 1) is the second of January 1970." >> docs/api.md`,
  }),
  () => ({ text: "", command: "grep -c '## 0.9.0' CHANGELOG.md" }),
  (results) => ({ text: `CHANGELOG.md has ${Number(results.at(-1))} section for 0.9.0.` }),
];

/** Returns the number of failed tests, from the output of the tests. */
function failures(tests: string): number {
  return Number(/^(?:# |ℹ )fail (\d+)/mu.exec(tests)?.[1] ?? 0);
}
