import { Fault, parseAgentId } from "../../../kernel/index.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { RouteClient, RequestError } from "../../client/route-client.ts";
import { Conversation } from "./client/conversation.ts";
import type { FrontOptions } from "./front/desk.ts";
import {
  openLocalServer,
  remoteServer,
  type ChatServer,
  type LocalServerOptions,
} from "./client/local-server.ts";
import { eachSession, findSessionId } from "./client/find-session.ts";
import { faultOf, tokenVariable } from "./client/server-place.ts";

/** The options of `reeve chat`, as texts from the command line. */
export interface ChatOptions extends LocalServerOptions {
  readonly session?: string;
  readonly continue?: boolean;
  readonly new?: boolean;
  readonly url?: string;
  readonly plain?: boolean;
  readonly mode: string;
}

/**
 * Options that decide about the agents. They are not allowed for a server at an address, because that server has
 * its own agents.
 */
const localOptions = {
  model: "--model",
  baseUrl: "--base-url",
  tools: "--tools",
  root: "--root",
  sandbox: "--sandbox",
  instructions: "--instructions",
  maxTurns: "--max-turns",
  profile: "--profile",
} as const satisfies { readonly [Name in keyof ChatOptions]?: string };

/** Starts a conversation with an agent of this folder or of a server, and ends when the person leaves. */
export async function chatCommand(options: ChatOptions, terminal: Terminal): Promise<ExitKind> {
  refuseTogether(options);
  const server = await serverOf(options, terminal);
  try {
    const client = new RouteClient(server.place);
    const agent = await agentOf(client, options.agent ?? server.local?.workspace.settings.defaultAgent);
    const front: FrontOptions = {
      server,
      client,
      terminal,
      model: agent.model ?? undefined,
      converse: (onChange, onItem) =>
        new Conversation({
          client,
          agent: agent.name,
          onChange,
          ...(onItem !== undefined && { onItem }),
          onOpen: (sessionId) => server.drive(sessionId),
        }),
      begin: (conversation) => begin(conversation, client, options),
    };
    if (options.mode === "rpc") {
      const { rpcChat } = await import("./front/rpc.ts");
      return await rpcChat(front);
    }
    if (canDraw(options, terminal)) {
      const { interactiveChat } = await import("./front/interactive.ts");
      return await interactiveChat(front);
    }
    const { plainChat } = await import("./front/plain.ts");
    return await plainChat(front);
  } catch (error) {
    throw error instanceof RequestError ? faultOf(error) : error;
  } finally {
    await server.close();
  }
}

/** Whether a person uses the chat at a terminal on which the cursor can be moved. */
function canDraw({ plain = false }: ChatOptions, { env, canAsk, isWatched }: Terminal): boolean {
  return !plain && canAsk && isWatched && env["TERM"] !== "dumb";
}

function refuseTogether(options: ChatOptions): void {
  if (options.mode !== "text" && options.mode !== "rpc")
    throw new Fault("invalid_argument", `invalid --mode ${options.mode}: expected text or rpc`);
  for (const name of ["agent", "session"] as const)
    if (options[name] === "") throw new Fault("invalid_argument", `invalid --${name}: it is empty; name one`);
  const chosen = [
    ...(options.session === undefined ? [] : ["--session"]),
    ...(options.continue === true ? ["--continue"] : []),
    ...(options.new === true ? ["--new"] : []),
  ];
  if (chosen.length > 1)
    throw new Fault("invalid_argument", `${chosen.join(" and ")} exclude each other; leave one of them out`);
  if (options.url === undefined) return;
  const ignored = Object.entries(localOptions).flatMap(([name, option]) =>
    options[name as keyof typeof localOptions] === undefined ? [] : [option],
  );
  if (ignored.length > 0)
    throw new Fault(
      "invalid_argument",
      `${ignored.join(" and ")} cannot change the agents of a server; leave it out with --url`,
    );
}

async function serverOf(options: ChatOptions, terminal: Terminal): Promise<ChatServer> {
  const { url } = options;
  return url === undefined
    ? openLocalServer(options, terminal)
    : remoteServer(url, terminal.env[tokenVariable]);
}

/**
 * Returns the agent with a name. Without a name, returns the agent that a person most likely means: `assistant`, or
 * else the first agent.
 */
async function agentOf(
  client: RouteClient,
  wanted: string | undefined,
): Promise<{ readonly name: string; readonly model: string | null }> {
  if (wanted !== undefined) return client.get("/api/agents/{name}", { params: { name: wanted } });
  const { agents } = await client.get("/api/agents");
  const conversing = agents.filter(({ kind }) => kind === "agent");
  const chosen = conversing.find(({ name }) => name === "assistant") ?? conversing[0];
  if (chosen !== undefined) return chosen;
  throw new Fault(
    "not_found",
    "no agent can be used here; name a model with --model provider/id or REEVE_MODEL, or add an agent with reeve init",
  );
}

async function begin(conversation: Conversation, client: RouteClient, options: ChatOptions): Promise<void> {
  const { session, continue: isContinued = false, agent } = options;
  if (session !== undefined) {
    const sessionId = await findSessionId(client, session);
    if (agent !== undefined) await refuseOtherAgent(client, sessionId, agent);
    return conversation.open(sessionId);
  }
  if (!isContinued) return conversation.startNew();
  for await (const { agentId, sessionId } of eachSession(client))
    if (agent === undefined || isOf(agentId, agent)) return conversation.open(sessionId);
  conversation.startNew();
  conversation.model.note("There is no conversation to continue, so this one is new.");
}

async function refuseOtherAgent(client: RouteClient, sessionId: string, agent: string): Promise<void> {
  const { agentId } = await client.get("/api/sessions/{sessionId}", { params: { sessionId } });
  if (isOf(agentId, agent)) return;
  throw new Fault(
    "invalid_argument",
    `invalid --agent ${JSON.stringify(agent)}: session ${sessionId} belongs to agent ${JSON.stringify(agentId)}; leave out --agent, or --session for a new conversation with ${agent}`,
  );
}

/** Whether an agent id belongs to an agent with this name. */
function isOf(agentId: string, agent: string): boolean {
  return agentId === agent || parseAgentId(agentId).name === agent;
}
