import type { Agent } from "../../../assembly/agent.ts";
import type { ServerConfigs } from "../../../capabilities/mcp/index.ts";
import type { JsonObject, RunId, Runtime, SessionId } from "../../../kernel/index.ts";

/** An agent that the user of an editor can choose. */
interface EditorAgent {
  readonly name: string;
  readonly description?: string;
}

/** A command of the agent. The user writes `/` and its name at the beginning of an input. */
export interface EditorCommand {
  readonly name: string;
  readonly description: string;
  /** Description of the text that the user may write after the name. If absent, no text is allowed. */
  readonly hint?: string;
}

/** An agent for the runs of one session, and the metadata of those runs. */
export interface SessionAgent {
  readonly agent: Agent;
  readonly metadata: JsonObject;
}

/** A folder in which an editor works. */
export interface EditorFolder {
  /** Folder in which the tools work. Editors receive absolute paths. */
  readonly root: string;
  readonly runtime: Runtime;
  readonly agents: readonly EditorAgent[];
  readonly commands: readonly EditorCommand[];
  /** Name of the agent of new sessions. */
  readonly agentName: string;
  /** Whether the user has chosen the agent explicitly. Sessions of other agents then continue with this agent. */
  readonly isAgentChosen: boolean;
  agent(name: string, sessionId: SessionId): Promise<SessionAgent>;
  /** Expands an input that begins with a command. Returns any other input unchanged. */
  expand(input: string, sessionId: SessionId): Promise<string>;
  /** Resolves when the process that owns a run has applied the command to resume it. */
  whenResumed(runId: RunId): Promise<void>;
}

/** The functions that `AcpAgent` needs from the program that hosts the agents. */
export interface EditorHost {
  readonly version: string;
  /** Opens a folder with the MCP servers that the editor passes. Throws `invalid_argument` for a folder that does not exist. */
  open(cwd: string, servers: ServerConfigs): Promise<EditorFolder>;
  /**
   * Returns the runtime of a folder that contains sessions, to list and delete them. `undefined` if the folder
   * contains none.
   */
  find(cwd: string): Promise<Runtime | undefined>;
  /** Folder whose sessions are listed if the editor names none. */
  readonly cwd: string;
  log(line: string): void;
}
