import type { JsonSchema } from "../../kernel/index.ts";
import { plainKeywords, type PlainKeywords, type Scalar } from "./plain-keywords.ts";

/** What is wrong with a value, and where in it, as a JSON Pointer. */
export interface SchemaProblem {
  readonly instancePath: string;
  readonly message?: string;
}

/** A schema as most tools have it. Of JSON it finds what ajv finds, in the same words and order; `PlainKeywords` says how far it goes. */
export class PlainSchema {
  readonly #types: readonly string[];
  readonly #constant: Scalar | undefined;
  readonly #listed: readonly Scalar[] | undefined;
  readonly #anyOf: readonly PlainSchema[] | undefined;
  readonly #oneOf: readonly PlainSchema[] | undefined;
  readonly #allOf: readonly PlainSchema[] | undefined;
  readonly #rules: readonly KindRules[];
  /** The kind that a value must be, if there are rules for it: then it is told in their place that the value is none. */
  readonly #ruledType: string | undefined;

  /** `undefined` for a schema that says more, or is malformed: that is ajv's to read, or to refuse. */
  static of(schema: JsonSchema): PlainSchema | undefined {
    const says = plainKeywords(schema);
    return says === undefined ? undefined : new PlainSchema(says);
  }

  constructor(says: PlainKeywords) {
    const { type = [], const: constant, enum: listed, anyOf, oneOf, allOf } = says;
    this.#types = typeof type === "string" ? [type] : [...type];
    this.#constant = constant;
    this.#listed = listed && [...listed];
    this.#anyOf = anyOf?.map((each) => new PlainSchema(each));
    this.#oneOf = oneOf?.map((each) => new PlainSchema(each));
    this.#allOf = allOf?.map((each) => new PlainSchema(each));
    this.#rules = rulesOf(says);
    const [only] = this.#types;
    const isRuled = this.#types.length === 1 && this.#rules.some(({ kind }) => kind === only);
    this.#ruledType = isRuled ? only : undefined;
  }

  problems(value: unknown): readonly SchemaProblem[] {
    const found: SchemaProblem[] = [];
    this.find(value, found);
    return found;
  }

  find(value: unknown, found: SchemaProblem[]): void {
    const kind = kindOf(value);
    if (this.#ruledType === undefined && !this.#allows(kind, value)) this.#tellType(found);
    if (this.#constant !== undefined && value !== this.#constant) tell(found, "must be equal to constant");
    if (this.#listed?.includes(value as Scalar) === false)
      tell(found, "must be equal to one of the allowed values");
    if (this.#anyOf !== undefined) findAmong(this.#anyOf, atLeastOne, value, found);
    if (this.#oneOf !== undefined) findAmong(this.#oneOf, exactlyOne, value, found);
    if (this.#allOf !== undefined) for (const each of this.#allOf) each.find(value, found);
    for (const rules of this.#rules) {
      if (rules.kind === kind) rules.find(value as never, found);
      else if (rules.kind === this.#ruledType) this.#tellType(found);
    }
  }

  #allows(kind: string, value: unknown): boolean {
    for (const type of this.#types)
      if (type === kind || (type === "integer" && Number.isInteger(value))) return true;
    return this.#types.length === 0;
  }

  #tellType(found: SchemaProblem[]): void {
    tell(found, `must be ${this.#types.join(",")}`);
  }
}

/** Its type in the words of a schema; for what JSON does not have, a word that no schema has. */
function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "number") return Number.isFinite(value) ? "number" : "NaN";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Of these one is to fit. They are tried until `enough` do: of `oneOf`, a second is one too many. */
function findAmong(
  schemas: readonly PlainSchema[],
  { enough, problem }: { readonly enough: number; readonly problem: string },
  value: unknown,
  found: SchemaProblem[],
): void {
  const before = found.length;
  let fitting = 0;
  for (const schema of schemas) {
    const each = found.length;
    schema.find(value, found);
    if (found.length === each && ++fitting === enough) break;
  }
  if (fitting === 1) found.length = before;
  else tell(found, problem);
}

const atLeastOne = { enough: 1, problem: "must match a schema in anyOf" };
const exactlyOne = { enough: 2, problem: "must match exactly one schema in oneOf" };

/** What holds for values of one kind. */
interface KindRules {
  readonly kind: string;
  find(value: never, found: SchemaProblem[]): void;
}

/** In the order in which they are looked at. */
function rulesOf(says: PlainKeywords): readonly KindRules[] {
  return [NumberRules, TextRules, ListRules, ObjectRules].flatMap((Rules) =>
    Rules.keywords.some((keyword) => Object.hasOwn(says, keyword)) ? [new Rules(says)] : [],
  );
}

class NumberRules implements KindRules {
  static readonly keywords = ["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "format"];
  readonly kind = "number";
  readonly #most: number;
  readonly #least: number;
  readonly #below: number;
  readonly #above: number;

  constructor({
    maximum = Infinity,
    minimum = -Infinity,
    exclusiveMaximum = Infinity,
    exclusiveMinimum = -Infinity,
  }: PlainKeywords) {
    this.#most = maximum;
    this.#least = minimum;
    this.#below = exclusiveMaximum;
    this.#above = exclusiveMinimum;
  }

  find(value: number, found: SchemaProblem[]): void {
    if (value > this.#most) tell(found, `must be <= ${this.#most}`);
    if (value < this.#least) tell(found, `must be >= ${this.#least}`);
    if (value >= this.#below) tell(found, `must be < ${this.#below}`);
    if (value <= this.#above) tell(found, `must be > ${this.#above}`);
  }
}

class TextRules implements KindRules {
  static readonly keywords = ["maxLength", "minLength", "pattern", "format"];
  readonly kind = "string";
  readonly #length: Limits | undefined;
  readonly #pattern: { readonly said: string; readonly compiled: RegExp } | undefined;

  constructor({ maxLength, minLength, pattern }: PlainKeywords) {
    this.#length = limits("characters", maxLength, minLength);
    this.#pattern = pattern === undefined ? undefined : { said: pattern, compiled: new RegExp(pattern, "u") };
  }

  find(value: string, found: SchemaProblem[]): void {
    if (this.#length !== undefined) tellLimits(found, this.#length, charactersIn(value));
    if (this.#pattern?.compiled.test(value) === false)
      tell(found, `must match pattern "${this.#pattern.said}"`);
  }
}

class ListRules implements KindRules {
  static readonly keywords = ["maxItems", "minItems", "items"];
  readonly kind = "array";
  readonly #length: Limits | undefined;
  readonly #items: PlainSchema | undefined;

  constructor({ maxItems, minItems, items }: PlainKeywords) {
    this.#length = limits("items", maxItems, minItems);
    this.#items = items && new PlainSchema(items);
  }

  find(value: readonly unknown[], found: SchemaProblem[]): void {
    if (this.#length !== undefined) tellLimits(found, this.#length, value.length);
    if (this.#items === undefined) return;
    for (let index = 0; index < value.length; index++) findInside(this.#items, index, value[index], found);
  }
}

class ObjectRules implements KindRules {
  static readonly keywords = [
    "maxProperties",
    "minProperties",
    "required",
    "propertyNames",
    "additionalProperties",
    "properties",
  ];
  readonly kind = "object";
  readonly #size: Limits | undefined;
  readonly #required: readonly string[];
  readonly #names: PlainSchema | undefined;
  readonly #members: readonly { readonly name: string; readonly schema: PlainSchema }[];
  readonly #known: ReadonlySet<string>;
  /** For what is not known; `false`: there may be nothing else. */
  readonly #others: PlainSchema | boolean;

  constructor(says: PlainKeywords) {
    const { maxProperties, minProperties, required = [], propertyNames } = says;
    const { additionalProperties = true, properties = {} } = says;
    this.#size = limits("properties", maxProperties, minProperties);
    this.#required = [...required];
    this.#names = propertyNames && new PlainSchema(propertyNames);
    this.#members = Object.entries(properties).map(([name, each]) => ({
      name,
      schema: new PlainSchema(each),
    }));
    this.#known = new Set(Object.keys(properties));
    this.#others =
      typeof additionalProperties === "boolean"
        ? additionalProperties
        : new PlainSchema(additionalProperties);
  }

  find(value: Readonly<Record<string, unknown>>, found: SchemaProblem[]): void {
    if (this.#size !== undefined) tellLimits(found, this.#size, Object.keys(value).length);
    for (const name of this.#required)
      if (value[name] === undefined) tell(found, `must have required property '${name}'`);
    if (this.#names !== undefined) findInNames(this.#names, value, found);
    if (this.#others !== true) this.#findInOthers(this.#others, value, found);
    for (const { name, schema } of this.#members) {
      const member = value[name];
      if (member !== undefined) findInside(schema, name, member, found);
    }
  }

  #findInOthers(
    others: PlainSchema | false,
    value: Readonly<Record<string, unknown>>,
    found: SchemaProblem[],
  ): void {
    for (const name of Object.keys(value)) {
      if (this.#known.has(name)) continue;
      if (others === false) tell(found, "must NOT have additional properties");
      else findInside(others, name, value[name], found);
    }
  }
}

function findInNames(names: PlainSchema, value: object, found: SchemaProblem[]): void {
  for (const name of Object.keys(value)) {
    const before = found.length;
    names.find(name, found);
    if (found.length > before) tell(found, "property name must be valid");
  }
}

interface Limits {
  readonly of: string;
  readonly most: number;
  readonly least: number;
}

function limits(of: string, most: number | undefined, least: number | undefined): Limits | undefined {
  if (most === undefined && least === undefined) return undefined;
  return { of, most: most ?? Infinity, least: least ?? 0 };
}

function tellLimits(found: SchemaProblem[], { of, most, least }: Limits, count: number): void {
  if (count > most) tell(found, `must NOT have more than ${most} ${of}`);
  if (count < least) tell(found, `must NOT have fewer than ${least} ${of}`);
}

/** A pair of surrogates is one. */
function charactersIn(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; count++) index += (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

function tell(found: SchemaProblem[], message: string): void {
  found.push({ instancePath: "", message });
}

/** What is found in a member or item is told with its place. */
function findInside(schema: PlainSchema, key: string | number, value: unknown, found: SchemaProblem[]): void {
  const before = found.length;
  schema.find(value, found);
  for (let index = before; index < found.length; index++) {
    const { instancePath, ...problem } = found[index] as SchemaProblem;
    found[index] = { ...problem, instancePath: `/${escaped(key)}${instancePath}` };
  }
}

function escaped(key: string | number): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}
