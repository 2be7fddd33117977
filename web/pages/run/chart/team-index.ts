import type { TaskId } from "../../../../src/kernel/index.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import { lookOfTask, type Look } from "../../../model/status.ts";
import { teamsOf, urgencyOf, type Team } from "./org-tree.ts";

interface Place {
  /** Position in `#teams`, and in the members of that team. */
  readonly team: number;
  readonly member: number;
}

/**
 * The teams below a task, kept up to date from view to view. A new view costs the tasks that changed; only a hired agent
 * costs O(tasks). Teams keep their order until one of them needs a person more or less than before, so that nothing
 * jumps. A team that did not change stays the same object.
 */
export class TeamIndex {
  #view: RunView | null = null;
  #rootId: TaskId | null = null;
  #teams: Team[] = [];
  #order: number[] = [];
  #places = new Map<TaskId, Place>();
  #counts = new Map<Look, number>();

  /** Number of agents of each look. */
  get counts(): ReadonlyMap<Look, number> {
    return this.#counts;
  }

  /** Returns the teams of a view, what needs a person first. */
  update(view: RunView, root: TaskView): readonly Team[] {
    const before = this.#view;
    if (before === null || this.#rootId !== root.taskId || !view.tasks.hasKeysOf(before.tasks))
      this.#rebuild(view, root);
    else this.#apply(view.tasks.changedSince(before.tasks));
    this.#view = view;
    this.#rootId = root.taskId;
    return this.#order.flatMap((at) => this.#teams[at] ?? []);
  }

  #rebuild(view: RunView, root: TaskView): void {
    this.#teams = [...teamsOf(view, root)];
    this.#order = this.#teams.map((_team, at) => at);
    this.#places = new Map();
    this.#counts = new Map();
    for (const [team, { members }] of this.#teams.entries())
      for (const [member, task] of members.entries()) {
        this.#places.set(task.taskId, { team, member });
        this.#count(task, 1);
      }
  }

  #apply(changed: Iterable<TaskView>): void {
    const dirty = new Map<number, TaskView[]>();
    for (const task of changed) {
      const place = this.#places.get(task.taskId);
      const team = place === undefined ? undefined : this.#teams[place.team];
      if (place === undefined || team === undefined) continue;
      const members = dirty.get(place.team) ?? [...team.members];
      dirty.set(place.team, members);
      this.#count(members[place.member], -1);
      this.#count(task, 1);
      members[place.member] = task;
    }
    let isUrgencyNew = false;
    for (const [at, members] of dirty) {
      const team = this.#teams[at] as Team;
      const next = { ...team, members, head: team.isRest ? team.head : (members[0] ?? team.head) };
      this.#teams[at] = next;
      isUrgencyNew ||= urgencyOf(next) !== urgencyOf(team);
    }
    if (isUrgencyNew)
      this.#order = this.#order.toSorted((one, other) => this.#urgency(one) - this.#urgency(other));
  }

  #urgency(at: number): number {
    return urgencyOf(this.#teams[at] as Team);
  }

  #count(task: TaskView | undefined, by: number): void {
    if (task === undefined) return;
    const look = lookOfTask(task);
    this.#counts.set(look, (this.#counts.get(look) ?? 0) + by);
  }
}
