import { Fault } from "../../kernel/index.ts";
import type { RouteRequest } from "../http/route.ts";

/**
 * The agent of a request: the one that it names, otherwise the agent of the session, otherwise the only agent of the
 * server. Throws `invalid_argument` if there are several.
 */
export async function chooseAgent(
  { runtime, server }: Pick<RouteRequest, "runtime" | "server">,
  named: string | undefined,
  sessionId: string | undefined,
): Promise<string> {
  if (named !== undefined) return server.agents.find(named).name;
  const names = server.agents.list.map(({ name }) => name);
  const session = sessionId === undefined ? undefined : await runtime.sessions.get(sessionId);
  const [first, ...others] = names;
  const own = names.find((name) => name === session?.agentId);
  if (own !== undefined) return own;
  if (first !== undefined && others.length === 0) return first;
  throw new Fault(
    "invalid_argument",
    first === undefined
      ? "this server hosts no agents"
      : `the request names no agent; set agent to one of ${names.join(", ")}`,
  );
}
