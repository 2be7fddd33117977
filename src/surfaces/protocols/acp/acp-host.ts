import type { Agent } from "../../../assembly/agent.ts";
import type { ServerConfigs } from "../../../capabilities/mcp/index.ts";
import type { JsonObject, RunId, Runtime, SessionId } from "../../../kernel/index.ts";

/** An agent that the user of an editor can choose. */
interface EditorAgent {
  readonly name: string;
  readonly description?: string;
}

/** An input that begins with `/` and the name. */
export interface EditorCommand {
  readonly name: string;
  readonly description: string;
  /** What the user may write after the name. If absent, nothing. */
  readonly hint?: string;
}

/** An agent for the runs of one session, and the metadata of those runs. */
export interface SessionAgent {
  readonly agent: Agent;
  readonly metadata: JsonObject;
}

/** A folder in which an editor works. */
export interface EditorFolder {
  /** Folder of the tools. Editors receive absolute paths. */
  readonly root: string;
  readonly runtime: Runtime;
  readonly agents: readonly EditorAgent[];
  readonly commands: readonly EditorCommand[];
  /** Name of the agent of new sessions. */
  readonly agentName: string;
  /** Whether the user has chosen the agent, so that sessions of other agents continue with it. */
  readonly isAgentChosen: boolean;
  agent(name: string, sessionId: SessionId): Promise<SessionAgent>;
  /** Replaces an input that begins with a command. Returns any other input unchanged. */
  expand(input: string, sessionId: SessionId): Promise<string>;
  /** Resolves when the owner of a run has applied the command that resumes it. */
  whenResumed(runId: RunId): Promise<void>;
}

/** What `AcpAgent` needs of the program that hosts the agents. */
export interface EditorHost {
  readonly version: string;
  /** Opens a folder with the MCP servers that the editor passes. Throws `invalid_argument` for a folder that does not exist. */
  open(cwd: string, servers: ServerConfigs): Promise<EditorFolder>;
  /** Returns the runtime of a folder that has sessions, to list and delete them. `undefined` if it has none. */
  find(cwd: string): Promise<Runtime | undefined>;
  /** Folder whose sessions are listed if the editor names none. */
  readonly cwd: string;
  log(line: string): void;
}
