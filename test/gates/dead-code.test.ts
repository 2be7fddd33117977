import { expect, test } from "vitest";
import { inCopy, type PlantedCopy } from "./planted-copy.ts";

type Issue = { readonly file: string } & Readonly<Record<string, readonly { readonly name: string }[]>>;

/** Options of the check for packages that a user who installs this package does not get. */
const asUser = ["--production", "--strict", "--include", "unlisted"];

const reached = `import { assert } from "fast-check";
import { phantom } from "phantom";

export const planted: unknown = [assert, phantom];
export const dead = 1;
export type DeadType = string;
`;

const { planted, plantedAsUser } = await inCopy(async (copy) => ({
  planted: await copy
    .plant({
      "src/entries/planted.ts": reached,
      "src/runtime/planted-dead-file.ts": "export const planted = 1;\n",
    })
    .then(() => copy.append("src/entries/index.ts", `export { planted } from "./planted.ts";\n`))
    .then(() => sweep(copy)),
  plantedAsUser: await sweep(copy, ...asUser),
}));

test("the dead code check accepts the unchanged repository: it finds only planted code", () => {
  expect(planted.findings.filter((finding) => !finding.startsWith("src/entries/planted.ts"))).toEqual([
    "src/runtime/planted-dead-file.ts files src/runtime/planted-dead-file.ts",
  ]);
});

test.for([
  { rule: "a package is declared before it is imported", finding: "src/entries/planted.ts unlisted phantom" },
  {
    rule: "every file is reached",
    finding: "src/runtime/planted-dead-file.ts files src/runtime/planted-dead-file.ts",
  },
  { rule: "every exported value is used", finding: "src/entries/planted.ts exports dead" },
  { rule: "every exported type is used", finding: "src/entries/planted.ts types DeadType" },
])("the dead code check refuses a planted violation of the rule: $rule", ({ finding }) => {
  expect(planted.code).toBe(1);
  expect(planted.findings).toContain(finding);
});

/** The only places that load an optional peer package, which the user installs to use that feature. */
const peersLoaded = [
  "src/capabilities/browser/launch-chromium.ts unlisted playwright-core",
  "src/capabilities/mcp/http-endpoint.ts unlisted @modelcontextprotocol/server",
  "src/capabilities/mcp/mcp-server.ts unlisted @modelcontextprotocol/server",
  "src/capabilities/mcp/served-call.ts unlisted @modelcontextprotocol/server",
  "src/capabilities/mcp/served-question.ts unlisted @modelcontextprotocol/server",
  "src/capabilities/mcp/transport.ts unlisted @modelcontextprotocol/client",
  "src/capabilities/telemetry/open-telemetry.ts unlisted @opentelemetry/api",
  "src/capabilities/hire/hired-architecture.ts unlisted @agentclientprotocol/sdk",
  "src/surfaces/cli/commands/acp/acp-command.ts unlisted @agentclientprotocol/sdk",
  "src/runtime/stores/postgres/db/database.ts unlisted pg",
  "src/runtime/stores/postgres/db/store-watch.ts unlisted pg",
  "src/runtime/engines/restate/endpoint.ts unlisted @restatedev/restate-sdk",
  "src/surfaces/client/react.ts unlisted react",
];

/** The only places that import a package which the published one contains (docs/notes/command-line.md#the-chat-draws-with-pi-tui). */
const bundled = [
  "src/surfaces/cli/chat/screen/node-terminal.ts unlisted @earendil-works/pi-tui",
  "src/surfaces/cli/chat/screen/pi-board.ts unlisted @earendil-works/pi-tui",
  "src/surfaces/cli/chat/screen/pi-choices.ts unlisted @earendil-works/pi-tui",
  "src/surfaces/cli/chat/screen/pi-screen.ts unlisted @earendil-works/pi-tui",
  "src/surfaces/cli/docs/document-html.ts unlisted marked",
];

test("the dead code check refuses development packages in source and finds only the planted ones", () => {
  const { code, findings } = plantedAsUser;
  expect(code).toBe(1);
  const own = ["src/entries/planted.ts unlisted fast-check", "src/entries/planted.ts unlisted phantom"];
  expect(findings.toSorted()).toEqual([...peersLoaded, ...bundled, ...own].toSorted());
});

async function sweep(copy: PlantedCopy, ...args: readonly string[]) {
  const { code, stdout } = await copy.runScript("dead-code", ...args, "--reporter", "json");
  const { issues } = JSON.parse(stdout) as { readonly issues: readonly Issue[] };
  const findings = issues.flatMap(({ file, ...kinds }) =>
    Object.entries(kinds).flatMap(([kind, found]) => found.map(({ name }) => `${file} ${kind} ${name}`)),
  );
  return { code, findings };
}
