//! What each board publishes under each version of the driver.
//!
//! Values of the n150 and the p300c are those of real ones, those of other boards have the same form.

/// A version of the driver, tt-kmd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kmd {
    /// No lists of pids, no heartbeat, no chip ids, no limits for Blackhole.
    V2_0,
    /// Lists of pids, as each opener's namespace has them; chip ids.
    V2_5,
    /// Everything that is read here.
    V2_9,
}

impl Kmd {
    /// All of them.
    pub const ALL: [Kmd; 3] = [Kmd::V2_0, Kmd::V2_5, Kmd::V2_9];

    pub(super) fn version(self) -> &'static str {
        match self {
            Kmd::V2_0 => "2.0.0",
            Kmd::V2_5 => "2.5.0",
            Kmd::V2_9 => "2.9.0",
        }
    }

    /// Since 2.5.
    pub fn has_pids(self) -> bool {
        self >= Kmd::V2_5
    }

    /// Since 2.1 for Blackhole, 2.3 for Wormhole.
    pub fn has_asic_ids(self) -> bool {
        self >= Kmd::V2_5
    }

    /// Since 2.7; likewise the count of thermal trips.
    pub fn has_heartbeat(self) -> bool {
        self >= Kmd::V2_9
    }

    /// Since 2.9.
    pub fn has_blackhole_limits(self) -> bool {
        self >= Kmd::V2_9
    }
}

/// A board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// Wormhole, one chip.
    N150,
    /// Wormhole, two chips, of which one has a PCIe link.
    N300,
    /// Blackhole, one chip, with a fan.
    P150a,
    /// Blackhole, two chips with a PCIe link each.
    P300c,
    /// 32 Wormhole chips with a PCIe link each.
    GalaxyWormhole,
    /// 32 Blackhole chips with a PCIe link each.
    GalaxyBlackhole,
}

impl Board {
    /// All of them.
    pub const ALL: [Board; 6] =
        [Board::N150, Board::N300, Board::P150a, Board::P300c, Board::GalaxyWormhole, Board::GalaxyBlackhole];

    /// As the driver names it.
    pub fn name(self) -> &'static str {
        match self {
            Board::N150 => "n150",
            Board::N300 => "n300",
            Board::P150a => "p150a",
            Board::P300c => "p300c",
            Board::GalaxyWormhole => "galaxy-wormhole",
            Board::GalaxyBlackhole => "galaxy-blackhole",
        }
    }

    /// Whether its chips are Wormhole ones; else they are Blackhole ones.
    pub fn is_wormhole(self) -> bool {
        matches!(self, Board::N150 | Board::N300 | Board::GalaxyWormhole)
    }

    /// Chips with a PCIe link.
    pub fn devices(self) -> u32 {
        match self {
            Board::N150 | Board::N300 | Board::P150a => 1,
            Board::P300c => 2,
            Board::GalaxyWormhole | Board::GalaxyBlackhole => 32,
        }
    }

    /// What its chips publish. `first` distinguishes it from other boards.
    pub(super) fn chips(self, first: u32, kmd: Kmd) -> Vec<Published> {
        (0..self.devices()).map(|place| Published::new(self, kmd, first, place)).collect()
    }
}

/// The files of a chip: names and contents.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) pci: Vec<(String, String)>,
    pub(super) class: Vec<(String, String)>,
    pub(super) sensors: Vec<(String, String)>,
    pub(super) counters: Vec<(String, String)>,
}

impl Published {
    fn new(board: Board, kmd: Kmd, first: u32, place: u32) -> Published {
        let device = if board.is_wormhole() { "0x401e" } else { "0xb140" };
        let pci = [
            ("vendor", "0x1e52"),
            ("device", device),
            ("class", "0x120000"),
            ("numa_node", "0"),
            ("current_link_speed", "16.0 GT/s PCIe"),
            ("max_link_speed", if board.is_wormhole() { "16.0 GT/s PCIe" } else { "32.0 GT/s PCIe" }),
            ("current_link_width", "16"),
            ("max_link_width", "16"),
        ];
        let ways =
            ["slv_posted_wr", "slv_nonposted_wr", "slv_rd", "mst_posted_wr", "mst_nonposted_wr", "mst_rd"];
        let counters = ways
            .iter()
            .flat_map(|way| [0, 1].map(|niu| (format!("{way}_data_word_niu{niu}"), "7".to_owned())));
        Published {
            pci: owned(&pci),
            class: class(board, kmd, first, place),
            sensors: if board.is_wormhole() { wormhole_sensors() } else { blackhole_sensors(board, kmd) },
            counters: counters.collect(),
        }
    }
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn class(board: Board, kmd: Kmd, first: u32, place: u32) -> Vec<(String, String)> {
    let common = [("tt_card_type", board.name())];
    let of_arch = if board.is_wormhole() { wormhole_attributes() } else { blackhole_attributes() };
    let mut files = owned(&common);
    files.extend(owned(&of_arch));
    // All chips of a board have its serial number.
    let (serial, asic_id) = match board.is_wormhole() {
        true => (0x0100_0185_1172_B05C + u64::from(first), 0x1279_2014_37FE_0AFE),
        false => (0x0000_0461_3192_4062 + u64::from(first), 0xFCF9_BCF9_E3C8_B89E),
    };
    files.push(("tt_serial".to_owned(), format!("{serial:016X}")));
    if kmd.has_asic_ids() {
        let asic_id: u64 = asic_id + (u64::from(first) << 8) + u64::from(place);
        files.push(("tt_asic_id".to_owned(), format!("{asic_id:016X}")));
    }
    if kmd.has_heartbeat() {
        files.push(("tt_heartbeat".to_owned(), "43874".to_owned()));
        if !board.is_wormhole() {
            files.push(("tt_therm_trip_count".to_owned(), "0".to_owned()));
        }
    }
    files
}

fn wormhole_attributes() -> Vec<(&'static str, &'static str)> {
    vec![
        ("tt_aiclk", "500"),
        ("tt_axiclk", "900"),
        ("tt_arcclk", "540"),
        ("tt_fw_bundle_ver", "80.10.0.0"),
        ("tt_m3app_fw_ver", "5.9.0.0"),
        ("tt_m3bl_fw_ver", "129.2.0.0"),
        ("tt_arc_fw_ver", "2.27.0.0"),
        ("tt_eth_fw_ver", "6.9.0"),
        ("tt_ttflash_ver", "3.4.0.0"),
    ]
}

fn blackhole_attributes() -> Vec<(&'static str, &'static str)> {
    vec![
        ("tt_aiclk", "800"),
        ("tt_axiclk", "960"),
        ("tt_arcclk", "800"),
        ("tt_fw_bundle_ver", "19.11.0.0"),
        ("tt_m3app_fw_ver", "0.27.0.0"),
    ]
}

fn wormhole_sensors() -> Vec<(String, String)> {
    owned(&[
        ("name", "wormhole"),
        ("temp1_input", "38500"),
        ("temp1_label", "asic1_temp"),
        ("temp1_max", "75000"),
        ("in0_input", "720"),
        ("in0_label", "vcore1"),
        ("in0_max", "950"),
        ("curr1_input", "20000"),
        ("curr1_label", "current1"),
        ("curr1_max", "160000"),
        ("power1_input", "15000000"),
        ("power1_label", "power1"),
        ("power1_max", "75000000"),
    ])
}

fn blackhole_sensors(board: Board, kmd: Kmd) -> Vec<(String, String)> {
    let mut files = owned(&[
        ("name", "blackhole"),
        ("temp1_input", "38036"),
        ("temp1_label", "asic_temp"),
        ("in0_input", "718"),
        ("in0_label", "vcore"),
        ("curr1_input", "23000"),
        ("curr1_label", "current"),
        ("power1_input", "16000000"),
        ("power1_label", "power"),
        ("fan1_label", "fan_rpm"),
    ]);
    let fan = if board == Board::P150a { "1680" } else { "4294967295" };
    files.push(("fan1_input".to_owned(), fan.to_owned()));
    if kmd.has_blackhole_limits() {
        let limits = [
            ("temp1_max", "90000"),
            ("in0_max", "900"),
            ("curr1_max", "500000"),
            ("power1_max", "125000000"),
        ];
        files.extend(owned(&limits));
    }
    files
}
