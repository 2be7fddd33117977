// The agents of a folder with files, `examples/first-steps/workspace`, run with scripted models. The program needs no key and no network.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRuntime } from "reeve";
import { scriptedModel } from "reeve/testing";
import { isAgent, openWorkspace } from "reeve/workspace";

const home = await mkdtemp(join(tmpdir(), "reeve-home-"));
const seller = scriptedModel([
  { toolCalls: [{ name: "read", input: { path: "prices.json" } }] },
  { toolCalls: [{ name: "handoff_accountant", input: { task: "3 times 90" } }] },
  "Three floor lamps cost $270.",
]);
const accountant = scriptedModel(["270, because 3 x 90 = 270"]);

const options = {
  cwd: join(import.meta.dirname, "workspace"),
  home,
  env: { REEVE_MODEL: "anthropic/claude-sonnet-5" },
  resolveModel: (name: string) => (name.endsWith("haiku-5") ? accountant : seller),
};
// Before the user trusts the folder, its agents are listed as skipped, because they choose models and tools.
await using stranger = await openWorkspace({ ...options, trust: "never" });
for (const { kind, path } of stranger.notices) console.log(`${kind}: ${path.slice(options.cwd.length + 1)}`);
assert.deepEqual(
  stranger.agents().map(({ name }) => name),
  ["assistant"],
);
for (const name of ["reeve.config.ts", "agents/seller.md"])
  assert.ok(stranger.guarded.some((path) => path.endsWith(name)));

await using workspace = await openWorkspace({ ...options, trust: "always" });
console.log(
  workspace
    .agents()
    .map(({ name, origin }) => `${name} (${origin})`)
    .join(", "),
);
assert.deepEqual(
  workspace.agents().map(({ name }) => name),
  ["assistant", "accountant", "seller", "greeter"],
);

const agent = await workspace.agent("seller");
assert.ok(isAgent(agent));
await using runtime = await openRuntime();
const result = await agent.invoke(await workspace.expand('/price 3 "floor lamp"'), { runtime });
console.log(`${result.status}: ${result.output}`);
assert.equal(result.status, "completed");
assert.equal(result.output, "Three floor lamps cost $270.");
assert.match(JSON.stringify(seller.calls[0]), /What do 3 pieces of .{2}floor lamp.{2} cost together/u);
assert.match(JSON.stringify(seller.calls[0]), /The shop is open from 9 to 18/u);

// The agents that a server of this folder hosts are listed in reeve.config.ts, which also contains one in code.
assert.deepEqual(
  (await workspace.hosted()).map(({ id }) => id),
  ["seller", "greeter"],
);
await rm(home, { recursive: true });
