import { contentThreshold } from "../../../kernel/index.ts";
import type { LargeValues, SplitText } from "./large-values.ts";
import type { StoredCommit } from "./stored-commit.ts";
import { isLarge } from "./text-units.ts";

/**
 * Maximum length of the text in a commit's row, in characters. A longer text is stored as a content, because a row
 * is deleted as a whole, but a content in pieces. The first commit of a fork can be longer even without large
 * values.
 */
const mostInRow = 65_536;

const none: readonly never[] = [];

/**
 * Returns the text that the row of a commit stores. A commit without large values is serialised once and not
 * searched.
 */
export function commitText(stored: StoredCommit, large: LargeValues): SplitText {
  if (stored.steps?.some((step) => isLarge(step)) !== true) {
    const text = JSON.stringify(stored);
    if (text.length < contentThreshold) return { text, refs: null, values: none };
  }
  return large.splitLists(stored, mostInRow);
}
