import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { beforeAll, afterAll, expect, inject, test } from "vitest";
import { repository, runNode } from "../gates/run-node.ts";

const program = `import { createClient } from "reeve/client";
import { ReeveProvider, useInbox, useRun, useRuns, useSession } from "reeve/react";

const client = createClient({ url: "http://127.0.0.1:4711" });

function Run({ runId }: { readonly runId: string }) {
  const { run, text, approvals } = useRun(runId);
  const { runs } = useRuns();
  const { inbox } = useInbox();
  const { entries } = useSession("ses_ann");
  const names: readonly string[] = approvals.map(({ toolName }) => toolName);
  return <p title={run?.status}>{[text, ...names, runs.length, inbox?.asking.length, entries.length].join()}</p>;
}

export const app = <ReeveProvider client={client}><Run runId="run_1" /></ReeveProvider>;

// @ts-expect-error: a run has a status of a closed list.
export const wrong: "finished" = (await client.runs.get("run_1")).status;
`;

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(inject("installed").project, "browser-"));
  await writeFile(join(folder, "app.tsx"), program);
});

afterAll(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));

test.each(["--module node16", "--module esnext --moduleResolution bundler"])(
  "a program for browsers has the types of reeve/client and reeve/react without those of Node, with %s",
  async (resolution) => {
    const tsc = join(repository, "node_modules/typescript/bin/tsc");
    const common =
      "--noEmit --strict --skipLibCheck --target es2022 --lib es2022,dom,dom.iterable --jsx react-jsx --types react";
    const args = [tsc, ...resolution.split(" "), ...common.split(" "), "--pretty", "false", "app.tsx"];
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const { code, stdout } = await runNode(args, folder);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  },
);

test("a bundler makes a program for browsers of reeve/client and reeve/react, with no module of Node and at most 7 KB of both compressed", async () => {
  const bundle = await rolldown({
    input: join(folder, "app.tsx"),
    external: ["react", "react/jsx-runtime"],
    platform: "browser",
  });
  const { output } = await bundle.generate({ format: "esm", minify: true });
  await bundle.close();
  const [{ code, imports }] = output;
  expect(imports.toSorted()).toEqual(["react", "react/jsx-runtime"]);
  expect(gzipSync(code).byteLength).toBeGreaterThan(2_000);
  expect(gzipSync(code).byteLength).toBeLessThan(7_000);
});
