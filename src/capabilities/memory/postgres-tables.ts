/**
 * The statements that create the tables of the newest version. `{name}` stands for `name` in the schema of the memory.
 *
 * - The configuration `memory_words` stems English words. Unlike `english`, it has no stop words, so that every word is found.
 * - `words` of a row contains the scope as a word, so that a search reads only the entries of that scope.
 * - `size` is the number of words.
 * - A scope without a key was forgotten: its rows are being deleted.
 * - Long subjects and predicates do not fit into an index, so `facts_about` contains their hash.
 */
export const postgresTables = `
  CREATE TEXT SEARCH DICTIONARY {memory_stem} (TEMPLATE = pg_catalog.snowball, LANGUAGE = english);
  CREATE TEXT SEARCH CONFIGURATION {memory_words} (PARSER = pg_catalog."default");
  ALTER TEXT SEARCH CONFIGURATION {memory_words}
    ADD MAPPING FOR asciiword, word, numword, uint, int, float, sfloat, version WITH {memory_stem};
  CREATE TABLE {scopes} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text COLLATE "C" UNIQUE
  );
  CREATE INDEX scopes_forgotten ON {scopes} (id) WHERE key IS NULL;
  CREATE TABLE {blocks} (
    scope bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (scope, name)
  );
  CREATE TABLE {episodes} (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    text text NOT NULL,
    at float8 NOT NULL,
    metadata text,
    words tsvector NOT NULL,
    size integer NOT NULL,
    UNIQUE (scope, id)
  );
  CREATE INDEX episodes_late ON {episodes} (scope, at DESC, place DESC);
  CREATE INDEX episodes_in_order ON {episodes} (scope, place);
  CREATE INDEX episodes_words ON {episodes} USING gin (words);
  CREATE TABLE {facts} (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    predicate text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    valid_from float8 NOT NULL,
    valid_until float8,
    recorded_at float8 NOT NULL,
    words tsvector NOT NULL,
    size integer NOT NULL,
    UNIQUE (scope, id)
  );
  CREATE INDEX facts_about ON {facts} (scope, hashtextextended(subject, 0), hashtextextended(predicate, 0));
  CREATE INDEX facts_late ON {facts} (scope, valid_from DESC, place DESC);
  CREATE INDEX facts_in_order ON {facts} (scope, place);
  CREATE INDEX facts_words ON {facts} USING gin (words);
`;
