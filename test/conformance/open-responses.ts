import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { Agent } from "../../src/assembly/agent.ts";
import { endlessModel } from "../surfaces/protocols/endless-model.ts";
import { startServer } from "../surfaces/server/test-server.ts";
import type { CaseResult, SuiteResult } from "./results.ts";

/** What the compliance suite of Open Responses exports. */
interface Suite {
  runAllTests(
    config: Readonly<Record<string, unknown>>,
    onProgress: () => void,
  ): Promise<readonly SuiteCase[]>;
}

interface SuiteCase {
  readonly id: string;
  readonly status: string;
  readonly errors?: readonly string[];
}

/** Calls the first function of the client that it has, and otherwise answers with a sentence. */
const model = endlessModel(({ tools = [], messages }) => {
  const usage = { inputTokens: 7, outputTokens: 3 };
  const [tool] = tools;
  if (tool === undefined || messages.at(-1)?.role === "tool") return { deltas: ["Hello ", "there."], usage };
  return { toolCalls: [{ name: tool.name, input: { location: "San Francisco, CA" } }], usage };
});

/** Parts of the specification that Reeve does not have, and why a case of each fails. */
const absent: readonly { readonly id: RegExp; readonly reason: string }[] = [
  { id: /^websocket-/u, reason: "the transport over WebSocket is optional, and Reeve has none" },
  {
    id: /^compact-/u,
    reason: "`POST /responses/compact` is absent: an agent shortens its conversations itself",
  },
];

/** Runs the compliance cases of a checkout of `openresponses/openresponses` against a server of Reeve with one agent. */
export async function runOpenResponses(folder: string): Promise<SuiteResult> {
  const suite = await loadSuite(folder);
  const server = await startServer([new Agent({ name: "clerk", model })]);
  try {
    const cases = await suite.runAllTests(
      {
        baseUrl: `${server.url}/v1`,
        apiKey: await server.tokenOf("acme", "run", "ann"),
        authHeaderName: "Authorization",
        useBearerPrefix: true,
        model: "clerk",
        runtime: "server",
      },
      () => undefined,
    );
    return { version: await versionOf(folder), cases: cases.map((each) => resultOf(each)) };
  } finally {
    await server.close();
  }
}

function resultOf({ id, status, errors = [] }: SuiteCase): CaseResult {
  if (status === "passed") return { id, status };
  const reason = absent.find((each) => each.id.test(id))?.reason ?? errors.join("; ").slice(0, 500);
  return { id, status: status === "skipped" ? status : "failed", reason };
}

/** The suite is written for a bundler, and for version 3 of zod, which version 4 contains. */
async function loadSuite(folder: string): Promise<Suite> {
  const entry = join(folder, "src/lib/compliance-tests.ts");
  try {
    await access(entry);
  } catch {
    throw new Error(`${folder} has no compliance cases; expected a checkout of openresponses/openresponses`);
  }
  const alias = { zod: fileURLToPath(import.meta.resolve("zod/v3")) };
  const built = await rolldown({ input: entry, platform: "node", tsconfig: false, resolve: { alias } });
  const place = await mkdtemp(join(tmpdir(), "reeve-suite-"));
  const file = join(place, "suite.mjs");
  try {
    await built.write({ file, format: "esm" });
    return (await import(pathToFileURL(file).href)) as Suite;
  } finally {
    await built.close();
    await rm(place, { recursive: true });
  }
}

/** The version of the specification: that of its OpenAPI document. */
async function versionOf(folder: string): Promise<string> {
  const text = await readFile(join(folder, "public/openapi/openapi.json"), "utf8");
  const { info } = JSON.parse(text) as { readonly info: { readonly version: string } };
  return info.version;
}
