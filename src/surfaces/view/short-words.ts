/** A person by name. The person on the machine of the server has none, and reads the page. */
export function personName(by: string | undefined): string {
  return by === "person" ? "You" : (by ?? "A person");
}

/** A number with a comma before every three digits of its whole part. */
export function grouped(number: number | string): string {
  return String(number).replace(/\B(?=(?:\d{3})+(?:\.|$))/gu, (_empty, at: number, whole: string) =>
    whole.lastIndexOf(".", at) >= 0 ? "" : ",",
  );
}

/** A number with its noun: 1 step, 2 steps. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** The last part of a model's name: `anthropic/claude-sonnet-5` is `claude-sonnet-5`. */
export function shortModel(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}
