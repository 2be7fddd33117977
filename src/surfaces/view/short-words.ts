/**
 * Returns the name of a person. The person at the server's own machine has no name and is addressed as the reader
 * of the page.
 */
export function personName(by: string | undefined): string {
  return by === "person" ? "You" : (by ?? "A person");
}

/** Formats a number with a comma between groups of three digits of its integer part. */
export function grouped(number: number | string): string {
  return String(number).replace(/\B(?=(?:\d{3})+(?:\.|$))/gu, (_empty, at: number, whole: string) =>
    whole.lastIndexOf(".", at) >= 0 ? "" : ",",
  );
}

/** A number with its noun: 1 step, 2 steps. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** Returns the last part of a model's name: `anthropic/claude-sonnet-5` becomes `claude-sonnet-5`. */
export function shortModel(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}
