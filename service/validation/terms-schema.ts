const TEXT = { type: 'string' };

/** Each of these, and nothing else. */
function only(terms: readonly string[], others: object = {}): object {
  return {
    additionalProperties: false,
    properties: { ...Object.fromEntries(terms.map((term) => [term, TEXT])), ...others },
  };
}

function listOf(terms: readonly string[]): object {
  return { type: 'array', items: { type: 'object', ...only(terms) } };
}

/**
 * The terms of a Bill of Lading's subject, and those that every credential's contexts define for a subject,
 * each with its type. The published schema refuses none of this: it is for whoever writes a subject, who has
 * most likely misspelt a term or filled it in wrongly.
 */
export const TERMS_SCHEMA = only(
  [
    'id',
    'name',
    'description',
    'billOfLadingName',
    'vessel',
    'voyageNo',
    'portOfLoading',
    'portOfDischarge',
    'carrierName',
    'placeOfReceipt',
    'placeOfDelivery',
    'shipperName',
    'shipperAddressStreet',
    'shipperAddressCountry',
    'consigneeName',
    'notifyPartyName',
    'links',
  ],
  {
    packages: listOf(['packagesDescription', 'packagesWeight', 'packagesMeasurement']),
    attachments: listOf(['data', 'filename', 'mimeType']),
    // The published schema says what these are.
    type: true,
    scac: true,
    blNumber: true,
  },
);
