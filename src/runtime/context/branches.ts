import { openStep } from "../task/active-step.ts";
import type { Branch, StepAddress } from "../../kernel/index.ts";
import type { NestedContext } from "../task/lazy-scope.ts";
import type { StepExecutor } from "../task/step-executor.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import { emittedAddress } from "../journal/wait-names.ts";

interface Branches {
  readonly branches: Readonly<Record<string, Branch<unknown>>>;
  /** One for each, in the order of declaration. */
  readonly contexts: readonly NestedContext[];
  /** Of all of them. */
  readonly strand: CancellationScope;
  readonly stopOnFault: boolean;
}

/** Runs branches side by side, and says how each settled. With `stopOnFault` the first fault is thrown, and the others are given up. */
export async function runBranches(
  steps: StepExecutor,
  address: StepAddress,
  { branches, contexts, strand, stopOnFault }: Branches,
): Promise<readonly PromiseSettledResult<unknown>[]> {
  // Else what was told before them would come after what they tell.
  const told = steps.takeTold();
  if (told.length > 0) openStep(steps.runner, emittedAddress(address), steps.strand, told);
  const running = Object.values(branches).map(async (branch, index) => {
    const ctx = contexts[index] as NestedContext;
    try {
      return await branch(ctx);
    } finally {
      for (const draft of ctx.takeTold()) steps.tell(draft);
    }
  });
  if (stopOnFault) await unlessFault(strand, running);
  return Promise.allSettled(running);
}

async function unlessFault(strand: CancellationScope, running: readonly Promise<unknown>[]): Promise<void> {
  try {
    await Promise.all(running);
  } catch (error) {
    strand.abandon("another branch failed");
    throw error;
  }
}
