// A lead hires two agents that Reeve does not run itself. Each works in a git worktree of its own, and one budget holds for
// all three. The agents are the demo agent of Reeve, which speaks the Agent Client Protocol as Claude Code does; a local
// server plays the provider. With `preset: "claude-code"` and a key, Claude Code does the same.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OrchestratorAgent, openRuntime, permissions, priceCatalog } from "reeve";
import { openGateway } from "reeve/gateway";
import { hiredAgent } from "reeve/hire";
import { scriptedModel } from "reeve/testing";

// The model of the hired agents: it runs one command, and then says that it is done.
const provider = createServer((request, response) => {
  let body = "";
  request.on("data", (piece: Buffer) => (body += piece.toString()));
  request.on("end", () => {
    const { messages } = JSON.parse(body) as { messages: { content: { type: string; text?: string }[] }[] };
    const [, file = "a.txt"] = /Write (\w+\.txt)/u.exec(JSON.stringify(messages)) ?? [];
    const isDone = messages.at(-1)?.content.some(({ type }) => type === "tool_result");
    const content = isDone
      ? [{ type: "text", text: `I have written ${file}.` }]
      : [
          {
            type: "tool_use",
            id: "call-1",
            name: "shell",
            input: { command: `echo "from ${file}" > ${file}` },
          },
        ];
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ content, usage: { input_tokens: 20, output_tokens: 100 } }));
  });
});
await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));

// A repository with one commit.
const folder = mkdtempSync(join(tmpdir(), "reeve-hire-"));
const checkout = join(folder, "project");
const git = (...args: string[]): string => execFileSync("git", args, { cwd: checkout, encoding: "utf8" });
execFileSync("git", ["init", "-q", checkout]);
writeFileSync(join(checkout, "README.md"), "A project.\n");
git("add", ".");
git("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-qm", "first");

const gateway = await openGateway({
  upstreams: {
    anthropic: {
      baseUrl: `http://127.0.0.1:${(provider.address() as AddressInfo).port}`,
      apiKey: "the key of the provider, which no agent sees",
    },
  },
});
const [coder, writer] = ["coder", "writer"].map((name) =>
  hiredAgent({
    name,
    description: `Writes files as a ${name}`,
    preset: "demo", // "claude-code": npm install -g @agentclientprotocol/claude-agent-acp
    model: "house-model",
    gateway,
    folder: checkout,
    isolation: { worktree: { repository: checkout, folder: join(folder, "worktrees") } },
    permissions: permissions({ allow: ["shell"], onAsk: "wait" }),
    sandbox: "warn", // "enforce", the default, refuses to start where bubblewrap is missing
  }),
);
assert.ok(coder && writer);
const lead = new OrchestratorAgent({
  name: "lead",
  model: scriptedModel([
    {
      toolCalls: [
        { name: "handoff_coder", input: { task: "Write code.txt" } },
        { name: "handoff_writer", input: { task: "Write guide.txt" } },
      ],
    },
    "Both files are written.",
  ]),
  subAgents: [coder, writer],
  budget: { maxCostUsd: 0.5 },
});

const runtime = await openRuntime({
  store: "memory:",
  prices: priceCatalog({
    overrides: [
      { provider: "anthropic", model: "house-model", usdPerMillion: { input: 0, output: 10 } },
      { provider: "scripted", model: "script", usdPerMillion: { input: 0, output: 10 } },
    ],
  }),
});
const run = await runtime.submit(lead, "Write a program and its guide.");
const { output, costUsd, error } = await run.result();
console.log(output, costUsd, "USD", error ?? "");
assert.equal(output, "Both files are written.");

// The checkout is as it was; the work is in commits of two branches.
assert.equal(git("status", "--porcelain"), "");
for await (const event of run.events({ follow: false, types: ["worktree_finish"] })) {
  if (!("seq" in event) || event.type !== "worktree_finish") continue;
  const { branch, commit, changed } = event.data;
  const [file = ""] = changed.paths;
  console.log(branch, "changed", file);
  assert.equal(git("show", `${commit}:${file}`), `from ${file}\n`);
}
assert.equal(readFileSync(join(checkout, "README.md"), "utf8"), "A project.\n");

await runtime.close();
await gateway.close();
provider.close();
