import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { readNamedFile } from "../text/bounded-file.ts";
import { replaceText } from "../text/replace-text.ts";

/** A decision to trust a project. */
export interface TrustedProject {
  /** Hash of what was trusted. */
  readonly hash: string;
  /** Hashes from `Coverage.parts`. They only show what has changed, and decide nothing. */
  readonly parts?: Readonly<Record<string, string>>;
  /** Time of the decision, in ISO form. */
  readonly at: string;
  /** Name, version and integrity of each package that the settings of the project name. */
  readonly packages?: Readonly<Record<string, string>>;
  /** Hash of each model provider package that the project contains, by its name. */
  readonly providers?: Readonly<Record<string, string>>;
  /**
   * Hashes from `textHashes`. A text that has changed loses its effect, while the code of the project remains
   * trusted.
   */
  readonly texts?: Readonly<Record<string, string>>;
  /**
   * The parts of the project that can limit an agent: guardrails, extensions, packages, agents in code, the
   * configuration and the choice of an agent. If there is one, the project does not run at all after its trust is
   * lost.
   */
  readonly guards?: readonly string[];
}

interface TrustFile {
  readonly version: 1;
  readonly projects: Readonly<Record<string, TrustedProject>>;
}

const maxTrustBytes = 4 * 1024 * 1024;

/** The decisions of the user about projects, in `~/.reeve/trust.json`. */
export class TrustStore {
  readonly path: string;

  constructor(home: string) {
    this.path = join(home, "trust.json");
  }

  /** Returns the decisions by the paths of their projects. */
  async all(): Promise<ReadonlyMap<string, TrustedProject>> {
    return new Map(Object.entries((await this.#read()).projects));
  }

  /**
   * Stores a decision. If two processes write at the same time, one decision may be lost, and the user is asked
   * again.
   */
  async trust(project: string, decision: TrustedProject): Promise<void> {
    const { projects } = await this.#read();
    await this.#write({ ...projects, [project]: decision });
  }

  /** Removes the decision about a project. Returns whether there was a decision. */
  async remove(project: string): Promise<boolean> {
    const { [project]: removed, ...projects } = (await this.#read()).projects;
    if (removed !== undefined) await this.#write(projects);
    return removed !== undefined;
  }

  async #write(projects: TrustFile["projects"]): Promise<void> {
    await replaceText(this.path, `${JSON.stringify({ version: 1, projects }, null, 2)}\n`);
  }

  async #read(): Promise<TrustFile> {
    const file = await readNamedFile("trust file", this.path, { maxBytes: maxTrustBytes });
    if (file === undefined) return { version: 1, projects: {} };
    try {
      const value = JSON.parse(file.text) as TrustFile;
      if (value.version === 1 && typeof value.projects === "object" && value.projects !== null) return value;
    } catch (error) {
      throw this.#invalid((error as Error).message);
    }
    throw this.#invalid("expected an object with version 1 and projects");
  }

  #invalid(problem: string): Fault {
    return new Fault("invalid_argument", `invalid trust file ${this.path}: ${problem}; correct or delete it`);
  }
}
