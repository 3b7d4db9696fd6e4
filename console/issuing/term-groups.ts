import { capitalised } from '../text/words';

/** Terms that belong together in the form. */
export interface TermGroup {
  title: string;
  terms: string[];
}

const GROUPS: readonly TermGroup[] = [
  { title: 'Document', terms: ['blNumber', 'scac', 'billOfLadingName', 'carrierName'] },
  {
    title: 'Voyage',
    terms: ['vessel', 'voyageNo', 'portOfLoading', 'portOfDischarge', 'placeOfReceipt', 'placeOfDelivery'],
  },
  {
    title: 'Parties',
    terms: [
      'shipperName',
      'shipperAddressStreet',
      'shipperAddressCountry',
      'consigneeName',
      'notifyPartyName',
    ],
  },
];

/** Terms with fields of their own, and the type, which is always the same. */
const NOT_PLAIN = ['type', 'packages', 'attachments'];

const LABELS: Readonly<Record<string, string>> = {
  blNumber: 'Bill of Lading number',
  scac: 'Carrier code (SCAC)',
  billOfLadingName: 'Name of the document',
  voyageNo: 'Voyage number',
  id: 'Subject id',
  packagesDescription: 'Description',
  packagesWeight: 'Weight',
  packagesMeasurement: 'Measurement',
};

export const REQUIRED_TERMS: readonly string[] = ['blNumber', 'scac'];

/** Groups the terms that the service names. Those that are new to the page come last. */
export function groupsOf(terms: readonly string[]): TermGroup[] {
  const known = GROUPS.map(({ title, terms: own }) => ({
    title,
    terms: own.filter((term) => terms.includes(term)),
  }));
  const grouped = new Set([...NOT_PLAIN, ...GROUPS.flatMap((group) => group.terms)]);
  const others = terms.filter((term) => !grouped.has(term));
  return [...known, { title: 'Other terms', terms: others }].filter((group) => group.terms.length > 0);
}

/** A term in words: `portOfLoading` is `Port of loading`. */
export function labelOf(term: string): string {
  const words = term.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).trim();
  return LABELS[term] ?? capitalised(words);
}
