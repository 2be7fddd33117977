import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, it } from "vitest";
import { bundleScripts, type BundledScripts } from "../bundle-scripts.ts";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const warning = "an open runtime keeps this process alive, although no caller waits for a run";
let folder: string;
/** The program is bundled, because it starts many times. */
let bundled: BundledScripts;

beforeAll(async () => {
  bundled = await bundleScripts({
    "open-process": here("open-process.ts"),
    checkpointer: here("../../src/runtime/stores/sqlite/db/checkpointer.ts"),
  });
  folder = await mkdtemp(join(tmpdir(), "reeve-open-"));
});
afterAll(async () => {
  await bundled.remove();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

interface Observed {
  /** `null` if the process was still alive when it printed `alive`, or warned. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program until it ends, or until it printed that it is alive after more than a second without work. */
function observe(what: string, store: string): Promise<Observed> {
  const program = join(bundled.dir, "open-process.mjs");
  const child = spawn(process.execPath, [program, what, store], { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (exitCode) => resolve({ exitCode, stdout, stderr }));
    child.stderr.on("data", (data: Buffer) => (stderr += data.toString()));
    child.stdout.on("data", (data: Buffer) => {
      stdout += data.toString();
      if (stdout.includes("alive")) child.kill("SIGKILL");
    });
  });
}

// The processes mostly wait for their timers.
describe.concurrent.each([["memory"], ["sqlite"]])("a process with an open runtime on a %s store", (kind) => {
  const storeFor = (what: string): string =>
    kind === "memory" ? "memory:" : `sqlite:${join(folder, `${what}.db`)}`;

  it("a process with an open runtime says once what keeps it alive when close() was forgotten", async ({
    expect,
  }) => {
    const { exitCode, stdout, stderr } = await observe("forgets", storeFor("forgets"));
    expect(stdout).toContain("filed");
    expect(exitCode).toBeNull();
    expect(stderr.split(warning)).toHaveLength(2);
    expect(stderr).toContain("call runtime.close()");
  });

  it.for(["stays", "worker", "waits"])(
    "a process with an open runtime stays alive without a warning if the runtime is meant to stay: %s",
    async (what, { expect }) => {
      const { exitCode, stdout, stderr } = await observe(what, storeFor(what));
      expect(stdout).toContain("alive");
      expect([exitCode, stderr]).toEqual([null, ""]);
    },
  );

  it("a process ends after close() of its runtime, although a call never settles and would time out much later", async ({
    expect,
  }) => {
    const what = "interrupts";
    expect(await observe(what, storeFor(what))).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });

  it.for(["closes", "ends"])(
    "a process with an open runtime ends without a warning: %s",
    async (what, { expect }) => {
      expect(await observe(what, storeFor(what))).toEqual({ exitCode: 0, stdout: `"filed"\n`, stderr: "" });
    },
  );
});
