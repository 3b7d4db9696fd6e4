/** The Bill of Lading that devnet issues. */
export const BILL_OF_LADING = {
  type: ['BillOfLading'],
  billOfLadingName: 'Sample Bill of Lading',
  scac: 'SGPU',
  blNumber: 'SGCNM21566325',
  vessel: 'Nordic Pearl',
  voyageNo: '118E',
  portOfLoading: 'Singapore',
  portOfDischarge: 'Rotterdam',
  carrierName: 'Straits Carriers Pte. Ltd.',
  packages: [
    {
      packagesDescription: 'Green coffee beans, 320 bags',
      packagesWeight: '19200 kg',
      packagesMeasurement: '33 m³',
    },
  ],
  shipperName: 'Lim & Sons Trading',
  consigneeName: 'Koffiebranderij De Haven B.V.',
};

/** Events of a mint, in order. */
export const MINT_EVENTS = [
  'escrow_created',
  'minted',
  'beneficiary_transfer',
  'holder_transfer',
  'token_received',
] as const;
