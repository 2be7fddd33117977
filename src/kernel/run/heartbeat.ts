/** The answer of a heartbeat that reports nothing. */
export const nothingToReport = "nothing to report";

/** Characters that models put around a short answer: spaces, quotation marks, emphasis and a final mark. */
const wrapping = /^[\s"'`*_“”‘’«»([]+|[\s"'`*_“”‘’«»)\].!。]+$/gu;

/**
 * Whether an answer consists only of "nothing to report": in any case, with quotation marks, emphasis or a final mark
 * around it. An answer with any other word reports something.
 */
export function reportsNothing(answer: unknown): boolean {
  if (typeof answer !== "string" || answer.length > 256) return false;
  const words = answer.replaceAll(wrapping, "").split(/\s+/u).join(" ");
  return words.toLowerCase() === nothingToReport;
}

/** Tells the model of a heartbeat how to answer if there is nothing to report. */
export function heartbeatInput(input: string): string {
  return `${input}\n\nIf there is nothing to report, answer only: ${nothingToReport}`;
}
