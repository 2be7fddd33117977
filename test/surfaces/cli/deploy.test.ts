import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { repository, runNode } from "../../gates/run-node.ts";
import { env, setUp } from "./model-server.ts";
import { main } from "./reeve-process.ts";
import { startWorker } from "./worker-process.ts";

const read = (name: string): Promise<string> => readFile(join(repository, "deploy", name), "utf8");

/** The arguments of a list, without the port and the store, which differ between machines. */
function portable(args: readonly string[]): readonly string[] {
  const changing = new Set(["--port", "--store"]);
  return args.filter((arg, index) => !changing.has(arg) && !changing.has(args[index - 1] ?? ""));
}

/**
 * Starts the command line with these arguments, as a container would, and checks its probes and its end. `check` is called with the
 * port of the probes while the worker runs, and after its end.
 */
async function runs(args: readonly string[], check?: (port: string) => Promise<number>): Promise<void> {
  const { folder, url } = await setUp(() => undefined);
  const [command, ...rest] = portable(args);
  expect(command).toBe("worker");
  const worker = await startWorker({ main, cwd: folder, env: env(url), args: rest });
  const { port } = new URL(worker.url);
  for (const path of ["healthz", "readyz", "metrics"])
    expect((await fetch(`http://127.0.0.1:${port}/${path}`)).status).toBe(200);
  expect(await check?.(port)).toBe(check && 0);
  worker.signal("SIGTERM");
  expect(await worker.ended).toBe(0);
  expect(await check?.(port)).toBe(check && 1);
}

/** The seconds that follow `--drain-timeout`. */
const drainOf = (args: readonly string[]): number => Number(args[args.indexOf("--drain-timeout") + 1]);

/** The settings of a systemd unit, by section and name. */
function unitSettings(text: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  let section = "";
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [, header] = /^\[(\w+)\]$/u.exec(line) ?? [];
    const [, name, value] = /^(\w+)=(.*)$/u.exec(line) ?? [];
    if (header !== undefined) section = header;
    else if (name !== undefined && value !== undefined) settings.set(`${section}.${name}`, value);
    else throw new Error(`invalid line of the unit: ${line}`);
  }
  return settings;
}

/** The instructions of a Dockerfile. */
function instructions(text: string): readonly (readonly [name: string, value: string])[] {
  return text
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, value] = /^([A-Z]+) (.+)$/u.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new Error(`invalid instruction: ${line}`);
      return [name, value] as const;
    });
}

test("the systemd unit starts a worker that drains before systemd kills it", async () => {
  const unit = unitSettings(await read("reeve-worker.service"));
  const [program = "", ...args] = (unit.get("Service.ExecStart") ?? "").split(" ");
  expect(program.endsWith("/node_modules/.bin/reeve")).toBe(true);
  expect(Number(unit.get("Service.TimeoutStopSec"))).toBeGreaterThan(drainOf(args));
  expect(unit.get("Service.ExecReload")).toContain("-HUP");
  expect(unit.get("Install.WantedBy")).toBe("multi-user.target");
  await runs(args);
});

test("the command of the Dockerfile runs a worker, as another user than root and without a shell", async () => {
  const found = instructions(await read("Dockerfile"));
  const all = (name: string) => found.filter(([each]) => each === name).map(([, value]) => value);
  expect(found[0]?.[0]).toBe("FROM");
  expect(all("USER")).toEqual(["node"]);
  // Docker reads these lists as JSON, and starts their programs without a shell.
  const listOf = (value = ""): readonly string[] => JSON.parse(value) as readonly string[];
  const [program, file = ""] = listOf(all("ENTRYPOINT")[0]);
  expect([program, file.endsWith("/node_modules/reeve/dist/surfaces/cli/main.js")]).toEqual(["node", true]);
  // Without a decision the worker would ignore the agents of the image.
  expect(listOf(all("RUN").at(-1))).toEqual([program, file, "trust", "--yes"]);
  const args = listOf(all("CMD")[0]);
  const [, port = ""] = [...args.join(" ").matchAll(/--port (\d+)/gu)][0] ?? [];
  expect(all("EXPOSE")).toEqual([port]);
  const [, probe] = (all("HEALTHCHECK")[0] ?? "").split(" CMD ");
  const [checker, ...flags] = listOf(probe);
  expect(checker).toBe("node");
  await runs(args, async (own) => {
    const { code } = await runNode(
      flags.map((flag) => flag.replace(`127.0.0.1:${port}/`, `127.0.0.1:${own}/`)),
      repository,
    );
    return code;
  });
});

test("the Kubernetes manifest probes the port of its worker and waits longer than the drain", async () => {
  const documents = parseAllDocuments(await read("kubernetes.yaml"));
  for (const { errors } of documents) expect(errors).toEqual([]);
  const [deployment, budget] = documents.map((each): unknown => each.toJS());
  expect(budget).toMatchObject({ kind: "PodDisruptionBudget", apiVersion: "policy/v1" });
  expect(deployment).toMatchObject({ kind: "Deployment", apiVersion: "apps/v1" });
  const { selector, template } = (deployment as { readonly spec: unknown }).spec as {
    readonly selector: { readonly matchLabels: object };
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly { readonly args: readonly string[] }[];
      };
    };
  };
  expect(template.metadata.labels).toEqual(selector.matchLabels);
  const [container] = template.spec.containers;
  const args = container?.args ?? [];
  expect(container).toMatchObject({
    ports: [{ name: "probes", containerPort: Number(args[args.indexOf("--port") + 1]) }],
    livenessProbe: { httpGet: { path: "/healthz", port: "probes" } },
    readinessProbe: { httpGet: { path: "/readyz", port: "probes" } },
  });
  expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainOf(args));
  await runs(args);
});
