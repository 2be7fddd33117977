import type { TaskId } from "../../../../src/kernel/index.ts";

/** The task of the card or the line that has the focus when a key is pressed. */
export function focusedTask({ target }: KeyboardEvent): TaskId | undefined {
  return target instanceof Element ? taskOf(target) : undefined;
}

/** The task of the card or the line that an element is a part of. */
export function taskOf(element: Element): TaskId | undefined {
  return element.closest<HTMLElement>("[data-task]")?.dataset["task"] as TaskId | undefined;
}
