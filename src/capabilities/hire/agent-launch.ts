import { createHash } from "node:crypto";
import { accessSync, constants, statSync } from "node:fs";
import { mkdir, realpath } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { Fault, type RunFacts, type SessionId, type TaskFolder } from "../../kernel/index.ts";
import { codeOf } from "../files/error-code.ts";
import { reeveHome } from "../files/reeve-home.ts";
import { gatewayVariables } from "../gateway/program-variables.ts";
import { commandEnvironment } from "../sandbox/command-environment.ts";
import type { ProcessStart } from "./agent-process.ts";
import { taskVariable } from "./orphans.ts";

/** How a hired agent is started. */
export interface LaunchSettings {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly inheritEnv: readonly string[];
  readonly home: "private" | "user";
}

/** The task for which a hired agent is started. */
export interface LaunchedTask {
  /** Real path of the folder in which the agent works. */
  readonly folder: string;
  /** The folder of the task. `null` if it has none of its own. */
  readonly own: TaskFolder | null;
  readonly sessionId: SessionId;
  readonly facts: Pick<RunFacts, "tenantId" | "userId">;
  /** The idempotency key of the attempt. */
  readonly key: string;
  /** The access of the agent to the gateway. */
  readonly access: { readonly url: string; readonly token: string };
}

/** Returns how to start the process of a task. Throws `agent_not_found` if its program does not exist. */
export async function launchOf(
  settings: LaunchSettings,
  task: LaunchedTask,
): Promise<Omit<ProcessStart, "clock" | "secrets">> {
  const { name, command, env, inheritEnv, home } = settings;
  const { folder, own, sessionId, facts, key, access } = task;
  const [program, ...args] = command;
  return {
    program: agentProgram(name, program),
    args,
    cwd: folder,
    env: {
      ...commandEnvironment(inheritEnv),
      ...(home === "private" && { HOME: await privateHome(name, sessionId, facts) }),
      ...own?.env,
      ...gatewayVariables(access),
      ...env,
      [taskVariable]: key,
    },
  };
}

/** Returns the path of the program of a command. Throws `agent_not_found`. */
function agentProgram(agent: string, program: string): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(isAbsolute);
  const candidates = program.includes("/")
    ? [resolve(program)]
    : folders.map((folder) => join(folder, program));
  const found = candidates.find(isProgram);
  if (found !== undefined) return found;
  const where = program.includes("/") ? "does not exist, or is no program" : "is not in the PATH of Reeve";
  throw new Fault(
    "agent_not_found",
    `the program ${program} of agent ${agent} ${where}; install it, or correct its command`,
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return false;
  }
}

/**
 * Creates the home folder of a hired agent in one conversation, or finds it again. Agents keep their sessions there, so that a
 * later run of the conversation needs the same one. Tenants, users and conversations never share one: what an agent writes
 * into its own settings reaches no other.
 */
async function privateHome(
  agent: string,
  sessionId: SessionId,
  { tenantId, userId }: Pick<RunFacts, "tenantId" | "userId">,
): Promise<string> {
  const owner = createHash("sha256")
    .update(JSON.stringify([tenantId, userId, sessionId]))
    .digest("hex");
  const name = agent.replaceAll(/[^A-Za-z0-9_-]+/gu, "-");
  const folder = join(reeveHome(), "homes", `${name}-${owner.slice(0, 32)}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}
