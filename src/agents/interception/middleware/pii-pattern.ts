/** Kinds of data that identify a person or an account. */
export type PiiKind = "email" | "card" | "iban" | "ssn" | "phone" | "ip";

export interface PiiPattern {
  /** The label that replaces a match, in brackets. */
  readonly label: string;
  /** The pattern; it must have the global flag. */
  readonly pattern: RegExp;
  readonly isReal?: (found: string) => boolean;
}

/**
 * The built-in patterns, in the order in which they are applied to a comparable text. They have no capture groups. A
 * match consists of ASCII letters, digits and
 * `._%+@()-`. A match of several words separated by single spaces (`4111 1111 …`) has no lower-case letters, and each
 * word contains a digit or has at most four capitals. No match is longer than `longestFind`. The filter for streamed
 * text relies on these properties.
 */
export const piiPatterns: Readonly<Record<PiiKind, PiiPattern>> = Object.freeze({
  email: {
    label: "EMAIL",
    pattern: /[A-Za-z\d._%+-]{1,64}@(?:[A-Za-z\d-]{1,63}\.){1,5}[A-Za-z]{2,24}/gu,
  },
  iban: {
    label: "IBAN",
    pattern: /(?<![\p{L}\d])[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){2,7}(?: ?[A-Z\d]{1,3})?(?![\p{L}\d])/gu,
    isReal: isIban,
  },
  card: {
    label: "CARD",
    pattern: /(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)/gu,
    isReal: isCard,
  },
  ssn: {
    label: "SSN",
    pattern: /(?<![\d-])(?!000|666|9)\d{3}[- ](?!00)\d{2}[- ](?!0000)\d{4}(?![\d-])/gu,
  },
  ip: {
    label: "IP",
    pattern: /(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.]*\d)/gu,
  },
  phone: {
    label: "PHONE",
    pattern:
      /(?<![\p{L}\d+])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,4}\)[ .-]?)?\d{2,4}(?:[ .-]\d{2,4}){1,4}(?![\p{L}\d])/gu,
    isReal: isPhone,
  },
});

/**
 * Matches the characters of which every match contains at least one, in some script or form. Most words contain
 * none and need no further check.
 */
export const mayHoldFind = /[@\p{N}\uFF20\uFE6B]/u;

/** Upper bound of the length of a match in characters. */
export const longestFind = 512;

/** Makes the Luhn check: every second digit from the right counts double, and the sum must be a multiple of 10. */
function isCard(found: string): boolean {
  const digits = digitsOf(found);
  if (digits.length < 13 || digits.length > 19 || /^(\d)\1*$/u.test(digits)) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/**
 * Makes the ISO 7064 check: with the country code moved to the end and letters as numbers from 10, the number
 * modulo 97 must be 1.
 */
function isIban(found: string): boolean {
  const compact = found.replaceAll(" ", "");
  if (compact.length < 15 || compact.length > 34) return false;
  let rest = 0;
  for (const sign of compact.slice(4) + compact.slice(0, 4)) {
    const value = Number.parseInt(sign, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1;
}

/** Whether a match has enough digits for a phone number and is not a date, an amount or a range of years. */
function isPhone(found: string): boolean {
  const { length } = digitsOf(found);
  if (length < 7 || length > 15) return false;
  if (/^[+(]/u.test(found) || /^\d{3}-\d{4}$/u.test(found)) return true;
  if (/^\d{4}[.-]\d{1,2}[.-]\d{1,2}$|^\d{1,2}[.-]\d{1,2}[.-]\d{4}$/u.test(found)) return false;
  return found.split(/[ .-]/u).length >= 3;
}

function digitsOf(text: string): string {
  return text.replaceAll(/\D/gu, "");
}
