import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type { Experiment } from "../experiments/index.ts";
import { Fault, readProperty } from "../kernel/index.ts";
import { Coverage, loadModule, TrustStore, type Places } from "./files/index.ts";

/** Maximum time in which a file of experiments must load, in milliseconds. */
const importTimeoutMs = 30_000;

/** Experiments of a project by the files that export them. */
export interface EvalFile {
  /** Path of the file, relative to the working folder. */
  readonly file: string;
  readonly experiments: readonly Experiment[];
}

/**
 * Loads a file and returns the experiments that it exports. Its code needs no trust, because the person names the
 * file. Throws `invalid_argument` if the file exports no experiment.
 */
export async function experimentsOfFile(file: string): Promise<EvalFile> {
  const path = resolve(file);
  if (!existsSync(path))
    throw new Fault(
      "not_found",
      `${file} not found; name a file that exports experiments, such as evals/triage.eval.ts`,
    );
  return {
    file,
    experiments: exported(file, await loadModule({ path, root: dirname(path) }, importTimeoutMs)),
  };
}

type EvalPlaces = Pick<Places, "home" | "project" | "cwd">;

/** The files of a project whose names end in `.eval.ts`, `.eval.mts`, `.eval.js` or `.eval.mjs`, and whether the user trusts them. */
export class ProjectEvals {
  readonly #places: EvalPlaces;
  /** Paths of the files, relative to the project. */
  readonly files: readonly string[];
  readonly #coverage: Coverage;

  private constructor(places: EvalPlaces, files: readonly string[], coverage: Coverage) {
    this.#places = places;
    this.files = files;
    this.#coverage = coverage;
  }

  /** Finds the files below `evals`, in the order of their names. Throws `not_found` if there are none. */
  static async find(places: EvalPlaces): Promise<ProjectEvals> {
    const { glob } = await import("tinyglobby");
    const { project } = places;
    const options = { cwd: project, onlyFiles: true, followSymbolicLinks: false, expandDirectories: false };
    const files = (await glob("evals/**/*.eval.{ts,mts,js,mjs}", options)).toSorted();
    if (files.length === 0)
      throw new Fault(
        "not_found",
        `no experiments found: ${join(project, "evals")} has no file such as triage.eval.ts; write one, or name a file: reeve eval FILE`,
      );
    const coverage = new Coverage(project);
    for (const file of files) await coverage.addFile(join(project, file));
    return new ProjectEvals(places, files, coverage);
  }

  /** Whether the user trusts the files, and the files of the project that they load, as they are now. */
  async isTrusted(): Promise<boolean> {
    const decision = (await new TrustStore(this.#places.home).all()).get(this.#key);
    return decision?.hash === this.#coverage.hash();
  }

  /** Stores the trust of the user in the files, in the state in which they were found. */
  async trust(): Promise<void> {
    const at = new Date().toISOString();
    await new TrustStore(this.#places.home).trust(this.#key, { hash: this.#coverage.hash(), at });
  }

  /** Loads all files. Throws for a file that has changed since it was found. */
  async load(): Promise<readonly EvalFile[]> {
    const { project, cwd } = this.#places;
    const covered = this.#coverage.files;
    const loaded: EvalFile[] = [];
    for (const each of this.files) {
      const path = join(project, each);
      const file = relative(cwd, path);
      const module = await loadModule({ path, root: project, covered }, importTimeoutMs);
      loaded.push({ file, experiments: exported(file, module) });
    }
    return loaded;
  }

  /**
   * Key of the trust decision about the experiments. It differs from the key of the project, so that a change of an
   * experiment does not end the trust in the agents.
   */
  get #key(): string {
    return join(this.#places.project, "evals");
  }
}

function exported(file: string, module: Readonly<Record<string, unknown>>): readonly Experiment[] {
  const values = Object.values(module).flatMap((value): readonly unknown[] =>
    Array.isArray(value) ? (value as readonly unknown[]) : [value],
  );
  const experiments = [...new Set(values)].filter(isExperiment);
  if (experiments.length > 0) return experiments;
  throw new Fault(
    "invalid_argument",
    `${file} exports no experiment; export one, as in export const triage = experiment({ ... }), or as the default export`,
  );
}

/** Whether a value is an experiment, even one from another copy of the package. */
function isExperiment(value: unknown): value is Experiment {
  return (
    readProperty(value, "runKind") === "workflow" && typeof readProperty(value, "countTrials") === "function"
  );
}
