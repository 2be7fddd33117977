import type { AgentSession, Architecture, Dependencies } from "../../kernel/index.ts";

/** Runs an architecture inside another, telling what it yields where it works: in a branch, into the branch. */
export async function drive(
  architecture: Architecture,
  session: AgentSession,
  deps: Dependencies,
  prompt: string,
): Promise<void> {
  for await (const draft of architecture.run(session, deps, prompt)) deps.ctx.tell(draft);
}
