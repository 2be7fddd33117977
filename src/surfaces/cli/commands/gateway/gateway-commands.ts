import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { Agent, get, type IncomingMessage } from "node:http";
import { constants } from "node:os";
import {
  gatewayAgent,
  gatewayAgentName,
  type GatewayRunFacts,
  type GatewayRunInput,
} from "../../../../capabilities/gateway/gateway-runs.ts";
import { proofPath } from "../../../../capabilities/gateway/gateway.ts";
import {
  GatewayTokens,
  type FoundServer,
  type ServerProof,
} from "../../../../capabilities/gateway/gateway-tokens.ts";
import {
  Fault,
  formatRunId,
  parseAgentId,
  type JsonValue,
  type RunId,
  type RunSummary,
} from "../../../../kernel/index.ts";
import { runIdWithin } from "../../../../runtime/index.ts";
import { openRuntime } from "../../../../assembly/open-runtime.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, counted, dollars } from "../../terminal/format.ts";
import { eachRun } from "../../setup/find-run.ts";
import { idleEngine, withRuns } from "../../setup/idle-engine.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";
import { readReport } from "../runs/run-report.ts";
import { gatewayCommand, type GatewayCommand } from "./program-environment.ts";

export interface GatewayTokenOptions extends StoreOptions {
  readonly maxBudgetUsd: string;
  readonly per?: string;
  readonly onBudget?: string;
  readonly wire?: string;
  readonly models?: string;
  readonly expires?: string;
  readonly name?: string;
  readonly user?: string;
  readonly tenant?: string;
}

export interface GatewayListOptions extends StoreOptions {
  readonly json?: boolean;
}

export interface GatewayEnvOptions extends StoreOptions {
  readonly url?: string;
  /** Names of variables that the program inherits although with them it may bypass the gateway. */
  readonly env?: readonly string[];
}

/**
 * Validity of a token of `reeve gateway env`, in milliseconds. It matters only if the command is killed and cannot
 * delete the token.
 */
const programTokenMs = 30 * 86_400_000;
/** Maximum time that `reeve gateway env` waits for a server that executes the run, in milliseconds. */
const longestWait = 15_000;
/** Maximum number of characters that are read from an answer of a gateway. */
const longestAnswer = 1_000_000;

/** Creates a gateway run with a token, and prints the token. The run is executed by a server. */
export async function createGatewayToken(
  options: GatewayTokenOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const maxCostUsd = amountOf(options.maxBudgetUsd);
  const expiresAt = options.expires === undefined ? null : timeOf(options.expires);
  const { per, onBudget, wire } = choicesOf(options);
  const models = modelsOf(options.models);
  const { user: userId, tenant: tenantId } = options;
  const unique = crypto.randomUUID();
  const runId = runIdWithin(tenantId, formatRunId(unique));
  const name = options.name ?? `program-${unique.slice(-6)}`;
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,127}$/.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid --name ${name}: expected 1 to 128 letters, digits, and _ . : @ -, starting with a letter, digit or _`,
    );
  const agent = gatewayAgent(name, onBudget);
  const store = await openOwnStore(options.store, { allowForeign: true });
  try {
    const runtime = await openRuntime({ store, engine: idleEngine, keepAlive: false });
    try {
      const tokens = new GatewayTokens(store.records);
      await tokens.claim(name, runId, async (before) => hasEnded(await store.journal.summary(before)));
      // The token is stored first. If this process dies before the run exists, it is refused, and was not printed.
      const token = await tokens.create(runId, { expiresAt });
      const input: GatewayRunInput = { models, wire: wire ?? null, expiresAt, served: 0 };
      const facts: GatewayRunFacts = {
        gateway: name,
        maxBudgetUsd: maxCostUsd,
        ...(per !== undefined && { per }),
        ...(wire !== undefined && { wire }),
      };
      await runtime.submit(agent, input as unknown as JsonValue, {
        runId,
        ...(per === undefined && { budget: { maxCostUsd } }),
        metadata: { ...facts },
        ...(userId !== undefined && { userId }),
        ...(tenantId !== undefined && { tenantId }),
      });
      await terminal.out(token);
      terminal.say(
        `Gateway run ${name} (${runId}) may spend ${periodic(maxCostUsd, per)}. Its token is stored as a hash and is not shown again.`,
      );
      terminal.say(`reeve serve executes it. Start a program with it: reeve gateway env ${name} -- COMMAND`);
    } finally {
      await runtime.close();
    }
  } finally {
    await store.close();
  }
  return "ok";
}

/** Prints the gateway runs of the store, newest first. */
export function listGateways(options: GatewayListOptions, terminal: Terminal): Promise<ExitKind> {
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const runs: RunSummary[] = [];
    for await (const run of eachRun(store, { kind: "gateway" })) runs.push(run);
    const lines =
      options.json === true ? runs.map((run) => JSON.stringify(listed(run))) : columns(runs.map(row));
    for (const line of lines) await terminal.out(line);
    if (options.json !== true) terminal.say(`Gateway runs: ${runs.length}`);
    return "ok";
  });
}

/** Prints one gateway run: its budget, its requests by model, its refusals and its tokens. */
export function showGateway(
  name: string,
  options: GatewayListOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const tokens = new GatewayTokens(store.records);
    const runId = await runOf(tokens, name);
    const { summary, calls, unreported } = await readReport(store, runId);
    let refused = 0;
    let notAllowed = 0;
    let lastReason = "";
    for await (const { type, data } of store.events.read(runId)) {
      if (type === "budget_exhausted") refused++;
      if (type !== "gateway_request" || data.reason === undefined) continue;
      notAllowed += 1 + (data.skipped ?? 0);
      lastReason = `${data.status} ${data.reason}`;
    }
    const known = (await tokens.ofRun(runId)).map(({ ending, createdAt, expiresAt }) => ({
      ending,
      createdAt,
      expiresAt,
    }));
    const models = calls.map(({ model, calls: requests, usage }) => ({
      model,
      requests,
      costUsd: usage.costUsd,
    }));
    if (options.json === true) {
      await terminal.out(
        JSON.stringify({
          ...listed(summary),
          models,
          lost: unreported.calls,
          refused,
          notAllowed,
          tokens: known,
        }),
      );
      return "ok";
    }
    await terminal.out(`${printable(name)}  ${runId}  ${summary.status}`);
    await terminal.out(
      `spent ${dollars(summary.costUsd)} of ${budgetOf(summary)} in ${counted(summary.turns)} requests, ${counted(refused)} refused`,
    );
    for (const line of columns(
      models.map(({ model, requests, costUsd }) => [
        `  ${printable(model)}`,
        `${counted(requests)} requests`,
        dollars(costUsd),
      ]),
    ))
      await terminal.out(line);
    if (unreported.calls > 0)
      await terminal.out(
        `  ${counted(unreported.calls)} requests ended without usage and are charged in full: ${dollars(unreported.costUsd)}`,
      );
    if (notAllowed > 0)
      await terminal.out(
        `  ${counted(notAllowed)} requests were refused for other reasons, the last one with ${printable(lastReason)}`,
      );
    for (const { ending, createdAt, expiresAt } of known)
      await terminal.out(
        `token ...${ending}, created ${timeText(createdAt)}${expiresAt === null ? "" : `, valid until ${timeText(expiresAt)}`}`,
      );
    return "ok";
  });
}

/** Deletes the tokens of gateway runs and cancels the runs. Every server then refuses these tokens. */
export function revokeGateways(
  names: readonly string[],
  options: StoreOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withRuns(options, terminal, async (store, runtime): Promise<ExitKind> => {
    const tokens = new GatewayTokens(store.records);
    const found = await Promise.all(names.map(async (name) => ({ name, runId: await runOf(tokens, name) })));
    for (const { name, runId } of found) {
      await tokens.revoke(runId);
      const run = await runtime.findSubmitted(runId);
      if (run !== undefined && !hasEnded(await run.summary()))
        await run.as("person").cancel("the token was revoked");
      await terminal.out(name);
    }
    return "ok";
  });
}

/**
 * Starts a program that uses the gateway with a separate token, which is deleted when the program ends. Returns the
 * program's exit code.
 */
export function runBehindGateway(
  name: string,
  command: readonly string[],
  options: GatewayEnvOptions,
  terminal: Terminal,
): Promise<number> {
  return withStore(options, terminal, async (store) => {
    const tokens = new GatewayTokens(store.records);
    const runId = await runOf(tokens, name);
    const token = await tokens.create(runId, { expiresAt: Date.now() + programTokenMs });
    try {
      const { url, isKey } = await reachableGateway(tokens, token, name, options.url);
      const { env: kept = [] } = options;
      const missing = kept.filter((each) => terminal.env[each] === undefined);
      if (missing.length > 0)
        throw new Fault("invalid_argument", `invalid --env ${missing.join(", ")}: the variable is not set`);
      const started = gatewayCommand(command, { url, token, isKey, kept }, terminal.env);
      const { removed, warning } = started;
      if (warning !== undefined) terminal.say(`Warning: ${warning}`);
      if (removed.length > 0)
        terminal.say(`Not inherited: ${removed.join(", ")}. Keep a variable with --env NAME.`);
      return await runProgram(started);
    } finally {
      await tokens.revoke(runId, token);
    }
  });
}

function wait(): void {}

function runProgram({
  args: [program = "", ...args],
  env,
}: Pick<GatewayCommand, "args" | "env">): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, stdio: "inherit" });
    // The terminal sends Ctrl-C to the program as well. This process waits for its end, and deletes the token.
    const stop = (): void => void child.kill("SIGTERM");
    process.on("SIGINT", wait).on("SIGTERM", stop);
    const settle = (): void => void process.off("SIGINT", wait).off("SIGTERM", stop);
    child.once("error", (error: NodeJS.ErrnoException) => {
      settle();
      const problem =
        error.code === "ENOENT" ? "it was not found; install it, or write its path" : error.message;
      reject(new Fault("dependency_missing", `cannot start ${program}: ${problem}`));
    });
    child.once("exit", (code, signal) => {
      settle();
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

/**
 * Waits for a server that executes the run of the token. The token is sent only to a server that proves that it
 * belongs to the store: another process may use the port of a killed server. `at` is the address that the person
 * named.
 */
async function reachableGateway(
  tokens: GatewayTokens,
  token: string,
  name: string,
  at: string | undefined,
): Promise<FoundServer> {
  const until = Date.now() + longestWait;
  let problem = "no server with a gateway uses this store";
  for (;;) {
    for (const server of await tokens.servers()) {
      const url = at ?? server.url;
      if (!(await isProven(url, server.proof))) {
        problem = `no gateway of this store answers at ${url}`;
        continue;
      }
      const status = await statusAt(url, token);
      // A run that has used up its budget has a gateway as well, which says so to the program.
      if (status === 200 || status === 402) return { ...server, url };
      problem =
        status === undefined
          ? `no gateway answers at ${url}`
          : `the gateway at ${url} does not execute the run (HTTP ${status})`;
    }
    if (Date.now() > until)
      throw new Fault(
        "engine_unavailable",
        `cannot use gateway run ${name}: ${problem}; start reeve serve with a key of a provider, such as ANTHROPIC_API_KEY`,
      );
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function isProven(url: string, proof: ServerProof): Promise<boolean> {
  const nonce = randomBytes(16).toString("hex");
  try {
    const { text } = await read(`${url}${proofPath}?${nonce}`);
    return proof.isAnswer(nonce, (JSON.parse(text) as { readonly proof?: unknown }).proof);
  } catch {
    // The process of this address was killed, has not started yet, or is none of Reeve.
    return false;
  }
}

async function statusAt(url: string, token: string): Promise<number | undefined> {
  try {
    return (await read(`${url}/v1/models`, { "x-reeve-token": token })).status;
  } catch {
    // The process of this address was killed, or has not started yet.
    return undefined;
  }
}

/**
 * Sends a GET request to a gateway. Proxy variables are ignored, because a proxy would receive the token, and
 * redirects are not followed.
 */
async function read(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const signal = AbortSignal.timeout(2_000);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers, agent: new Agent(), signal }, resolve).once("error", reject);
  });
  let text = "";
  for await (const piece of answer.setEncoding("utf8")) {
    text += piece as string;
    if (text.length > longestAnswer) break;
  }
  return { status: answer.statusCode, text };
}

async function runOf(tokens: GatewayTokens, name: string): Promise<RunId> {
  const runId = await tokens.runNamed(name);
  if (runId !== undefined) return runId;
  throw new Fault(
    "not_found",
    `gateway run ${printable(name)} not found; reeve gateway list shows the names`,
  );
}

/** Whether a run has finally ended. A run that was never created is treated as ended. */
function hasEnded(run: RunSummary | undefined): boolean {
  return run === undefined || (run.endedAt !== null && run.status !== "budget_exhausted");
}

function listed(run: RunSummary): object {
  const { runId, status, costUsd, turns, tenantId, userId, createdAt, metadata } = run;
  return {
    name: nameOf(run),
    runId,
    status,
    costUsd,
    maxBudgetUsd: metadata["maxBudgetUsd"] ?? null,
    per: metadata["per"] ?? null,
    wire: metadata["wire"] ?? null,
    requests: turns,
    tenantId,
    userId,
    createdAt,
  };
}

function row(run: RunSummary): string[] {
  const { runId, status, costUsd, turns, tenantId, userId } = run;
  const owner = [tenantId, userId].filter((each) => each !== null).join("/");
  return [
    printable(nameOf(run)),
    status,
    `${dollars(costUsd)} of ${budgetOf(run)}`,
    `${counted(turns)} requests`,
    printable(owner),
    runId,
  ];
}

function nameOf({ agentId }: RunSummary): string {
  return parseAgentId(agentId).key ?? gatewayAgentName;
}

/** Returns the budget with which the run was created, without top-ups. */
function budgetOf({ metadata }: RunSummary): string {
  const { maxBudgetUsd, per } = metadata as Partial<GatewayRunFacts>;
  return maxBudgetUsd === undefined ? "an unknown budget" : periodic(maxBudgetUsd, per);
}

function periodic(usd: number, per: GatewayRunFacts["per"]): string {
  return per === undefined ? dollars(usd) : `${dollars(usd)} per ${per}`;
}

/**
 * Checks the options that allow only certain words. A budget that renews cannot be topped up, so it has no option
 * for the time of the question.
 */
function choicesOf(options: GatewayTokenOptions): {
  readonly per: "day" | "month" | undefined;
  readonly onBudget: "ask" | "end" | undefined;
  readonly wire: "anthropic" | "openai" | "gemini" | undefined;
} {
  const per = choiceOf("--per", options.per, ["day", "month"]);
  const onBudget = choiceOf("--on-budget", options.onBudget, ["ask", "end"]);
  if (per !== undefined && onBudget === "ask")
    throw new Fault(
      "invalid_argument",
      `invalid --on-budget ask with --per ${per}: a budget that renews cannot be topped up; remove one of them`,
    );
  return { per, onBudget, wire: choiceOf("--wire", options.wire, ["anthropic", "openai", "gemini"]) };
}

function choiceOf<Word extends string>(
  option: string,
  text: string | undefined,
  words: readonly Word[],
): Word | undefined {
  const found = words.find((word) => word === text);
  if (text === undefined || found !== undefined) return found;
  throw new Fault("invalid_argument", `invalid ${option} ${text}: expected ${words.join(" or ")}`);
}

/** Smallest and largest budget that the ledger can count, in dollars. */
const [leastBudget, largestBudget] = [0.000_001, 9_000_000];

function amountOf(text: string): number {
  const usd = /^\d{1,7}(?:\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  if (usd >= leastBudget && usd < largestBudget) return usd;
  throw new Fault(
    "invalid_argument",
    `invalid --max-budget-usd ${text}: expected dollars from 0.000001 to below 9000000, such as 5 or 0.50`,
  );
}

/**
 * Parses a list of model names. `null` means all models of the gateway. Throws for a list without a name, because
 * such a list would refuse every model.
 */
function modelsOf(text: string | undefined): readonly string[] | null {
  const models = text?.split(",").map((model) => model.trim());
  if (models === undefined) return null;
  if (!models.includes("")) return models;
  throw new Fault(
    "invalid_argument",
    `invalid --models ${JSON.stringify(text)}: expected names with commas between them, such as gpt-5.2,gpt-5-mini`,
  );
}

const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a time: a duration from now on, or a date. */
function timeOf(text: string): number {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const time =
    count === undefined ? Date.parse(text) : Date.now() + Number(count) * unitMs[unit as keyof typeof unitMs];
  if (Number.isFinite(time) && time > Date.now()) return time;
  throw new Fault(
    "invalid_argument",
    `invalid --expires ${text}: expected a duration such as 30d, 12h or 90m, or a later date such as 2027-01-31`,
  );
}

function timeText(time: number): string {
  return new Date(time).toISOString();
}
