import type { ChatMessage } from "../../../kernel/index.ts";
import type { MessageGroup } from "./message-group.ts";

export interface RecentGroups {
  readonly kept: readonly MessageGroup[];
  readonly left: readonly MessageGroup[];
}

/**
 * Returns the newest groups whose total cost is at most `limit`. The newest group is always included. The user
 * message that the oldest of these groups answers is also always included, so that a turn that is cut keeps its
 * question.
 */
export function recentGroups(
  groups: readonly MessageGroup[],
  limit: number,
  cost: (messages: readonly ChatMessage[]) => number,
): RecentGroups {
  const questions = questionsOf(groups);
  let start = groups.length - 1;
  let total = 0;
  for (let index = start; index >= 0; index--) {
    total += cost(groups[index] ?? []);
    if (total > limit) break;
    const question = questions[index] ?? index;
    if (total + (question === index ? 0 : cost(groups[question] ?? [])) <= limit) start = index;
  }
  const question = questions[start] ?? start;
  const isKept = (_group: MessageGroup, index: number): boolean => index >= start || index === question;
  return {
    kept: groups.filter(isKept),
    left: groups.filter((group, index) => !isKept(group, index)),
  };
}

/** Returns for each group the position of the nearest user message at or before it. */
function questionsOf(groups: readonly MessageGroup[]): readonly (number | undefined)[] {
  let last: number | undefined;
  return groups.map((group, index) => {
    if (group[0]?.role === "user") last = index;
    return last;
  });
}
