import { resolve } from "node:path";
import { checkIngress, RestateAdmin } from "../../../../assembly/restate.ts";
import { Fault } from "../../../../kernel/index.ts";
import { sqlitePath } from "../../../../runtime/index.ts";
import { inspectWorkspace, type InspectedWorkspace } from "../../../../workspace/inspect-workspace.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { counted, shellWord } from "../../terminal/format.ts";
import { paintFor, type Paint } from "../../terminal/paint.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { findingsOf, type Finding, type FindingState, type Found } from "./finding.ts";
import {
  browserFindings,
  clockFindings,
  diskFindings,
  nodeFindings,
  portFindings,
  sandboxFindings,
} from "./machine-findings.ts";
import { providerFindings } from "./provider-findings.ts";
import { storeFindings } from "./store-findings.ts";
import { agentFiles, fileToEdit, workspaceFindings } from "./workspace-findings.ts";

export interface DoctorOptions {
  readonly store: string;
  readonly profile?: string;
  readonly ingressUrl?: string;
  readonly adminUrl?: string;
  readonly full?: boolean;
  readonly json?: boolean;
}

/**
 * Checks everything on this machine that Reeve needs, and prints each finding with the command that fixes it. The
 * check changes nothing: stores are only read, and no code of the workspace is loaded.
 */
export async function doctorCommand(options: DoctorOptions, terminal: Terminal): Promise<ExitKind> {
  const { json = false } = options;
  refuseInvalid(options);
  const paint = paintFor(terminal.isWatched, terminal.env);
  const counts = new Map<FindingState, number>();
  for await (const finding of diagnose(options, terminal.env)) {
    const { state } = finding;
    counts.set(state, (counts.get(state) ?? 0) + 1);
    const lines = json ? [JSON.stringify(finding)] : linesOf(finding, paint);
    for (const line of lines) await terminal.out(line);
  }
  const [errors, warnings] = [counts.get("error") ?? 0, counts.get("warning") ?? 0];
  terminal.say(
    errors + warnings === 0
      ? "No problem was found."
      : `${errors} ${errors === 1 ? "error" : "errors"}, ${warnings} ${warnings === 1 ? "warning" : "warnings"}.`,
  );
  return errors === 0 ? "ok" : "tampered";
}

/**
 * Throws for addresses that have an invalid form. Whether something answers at an address is reported as a finding.
 */
function refuseInvalid({ store, ingressUrl, adminUrl }: DoctorOptions): void {
  if (sqlitePath(store) === undefined && !/^postgres(?:ql)?:\/\//u.test(store))
    throw new Fault(
      "invalid_argument",
      `invalid --store ${JSON.stringify(store)}: expected sqlite:PATH or postgres://HOST/DATABASE`,
    );
  const urls = { "--ingress-url": ingressUrl, "--admin-url": adminUrl };
  for (const [option, url] of Object.entries(urls))
    if (url !== undefined && !/^https?:\/\/./u.test(url))
      throw new Fault(
        "invalid_argument",
        `invalid ${option} ${JSON.stringify(url)}: expected a URL such as http://127.0.0.1:9070`,
      );
}

function linesOf({ area, state, text, fix }: Finding, paint: Paint): readonly string[] {
  const colour = { ok: paint.green, note: paint.dim, warning: paint.yellow, error: paint.red }[state];
  const start = `${colour(state.padEnd(7))}  ${area.padEnd(9)}  `;
  return [
    `${start}${printable(text)}`,
    ...(fix === undefined ? [] : [`${" ".repeat(20)}fix: ${printable(fix)}`]),
  ];
}

/** Yields the findings of all areas, each as soon as it is known. */
async function* diagnose(
  { store, profile, ingressUrl, adminUrl, full = false }: Omit<DoctorOptions, "json">,
  env: Terminal["env"],
): AsyncIterable<Finding> {
  yield* await findingsOf("node", async () => nodeFindings());
  let workspace: InspectedWorkspace | undefined;
  yield* await findingsOf(
    "workspace",
    async () => {
      workspace = await inspectWorkspace({ env, ...(profile !== undefined && { profile }) });
      return workspaceFindings(workspace);
    },
    fileToEdit,
  );
  const agents = workspace === undefined ? [] : await agentFiles(workspace);
  if (workspace !== undefined) {
    const read = workspace;
    const models = [read.settings.model, ...agents.map(({ model }) => model)].filter(
      (model) => model !== undefined,
    );
    yield* await findingsOf("providers", () => providerFindings([...new Set(models)], read, env));
  }
  let newest: number | null = null;
  yield* await findingsOf("store", async () => {
    const found = await storeFindings(store, full);
    ({ newest } = found);
    return found.findings;
  });
  if (ingressUrl !== undefined || adminUrl !== undefined)
    yield* await findingsOf(
      "restate",
      () => restateFindings(ingressUrl, adminUrl),
      () =>
        `curl -sS ${shellWord(ingressUrl === undefined ? `${adminUrl}/health` : `${ingressUrl}/restate/health`)}`,
    );
  yield* await findingsOf("clock", async () => clockFindings(Date.now(), newest));
  const path = sqlitePath(store);
  yield* await findingsOf("disk", () => diskFindings(path === undefined ? undefined : resolve(path)));
  const needed = {
    settings: workspace?.settings ?? {},
    agentsWith: (tool: string): readonly string[] =>
      agents.flatMap(({ name, tools = [] }) =>
        tools.some((each) => each.toLowerCase() === tool) ? [name] : [],
      ),
  };
  yield* await findingsOf("sandbox", () => sandboxFindings(needed));
  yield* await findingsOf("browser", () => browserFindings(needed));
  yield* await findingsOf("ports", portFindings);
}

async function restateFindings(
  ingressUrl: string | undefined,
  adminUrl: string | undefined,
): Promise<readonly Found[]> {
  const found: Found[] = [];
  if (ingressUrl !== undefined) {
    await checkIngress(ingressUrl, 5_000);
    found.push({ state: "ok", text: `The ingress of Restate at ${ingressUrl} answers.` });
  }
  if (adminUrl !== undefined) {
    const deployments = await new RestateAdmin(adminUrl).list();
    found.push(
      deployments.length === 0
        ? {
            state: "warning",
            text: `The admin API of Restate at ${adminUrl} answers and knows no worker.`,
            fix: `reeve deploy http://WORKER:9080 --admin-url ${adminUrl}`,
          }
        : {
            state: "ok",
            text: `The admin API of Restate at ${adminUrl} answers; ${counted(deployments.length)} ${deployments.length === 1 ? "version of workers is" : "versions of workers are"} registered.`,
          },
    );
  }
  return found;
}
